/* endings.c HOW - a program that ends in one of the ways that the simulator tells apart. */
#include <heddle.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *how;
static struct hd_semaphore never;

static bool ends(const char *so)
{
	return strcmp(how, so) == 0;
}

static void *nothing(void *arg)
{
	return arg;
}

static void *wait_in_the_kernel(void *arg)
{
	pause();
	return arg;
}

static void *signal_and_wait_in_the_kernel(void *arg)
{
	hd_semaphore_signal(&never);
	return wait_in_the_kernel(arg);
}

static void *first(void *arg)
{
	pthread_t thread;

	printf("it says %s\n", how);
	if (ends("assert")) {
		fflush(stdout);
		abort();
	}
	if (ends("crash"))
		raise(SIGSEGV);
	if (ends("deadlock"))
		if (hd_semaphore_wait(&never, HD_FOREVER) != 0)
			abort();
	if (ends("held-open"))
		hd_hold_open(1);
	if (ends("livelock-yield"))
		for (;;)
			hd_yield();
	if (ends("livelock-checkpoint"))
		for (;;)
			hd_checkpoint();
	if (ends("livelock-sleep"))
		for (;;)
			hd_sleep(HD_SEC(1));
	if (ends("leak"))
		if (hd_spawn(nothing, NULL) < 0)
			abort();
	if (ends("leaks"))
		for (int i = 0; i < 3; i++)
			if (hd_spawn(nothing, NULL) < 0)
				abort();
	if (ends("no-leak-detached"))
		hd_detach(hd_spawn(nothing, NULL));
	if (ends("no-leak-daemon"))
		if (hd_spawn_with(&(struct hd_spawn){ .daemon = true }, nothing, NULL) < 0)
			abort();
	if (ends("exit-inside"))
		exit(3);
	if (ends("shutdown"))
		hd_shutdown(5);
	if (ends("threads-later")) {
		pthread_create(&thread, NULL, signal_and_wait_in_the_kernel, NULL);
		if (hd_semaphore_wait(&never, HD_FOREVER) != 0)
			abort();
	}
	if (ends("threads-blocked") && pthread_create(&thread, NULL, wait_in_the_kernel, NULL) == 0)
		pthread_join(thread, NULL);
	if (ends("never-alike"))
		for (int i = 0; i < (int)getpid() % 1000; i++)
			hd_checkpoint();
	if (ends("hang"))
		for (;;)
			pause();
	return arg;
}

int main(int argc, char **argv)
{
	how = argc > 1 ? argv[1] : "fine";
	if (ends("no-run"))
		return 0;
	if (ends("no-run-status"))
		return 3;
	if (ends("no-run-crash"))
		abort();
	pthread_t thread;
	if (ends("threads"))
		pthread_create(&thread, NULL, wait_in_the_kernel, NULL);
	int code = hd_run(NULL, first, NULL);
	if (ends("fine-then-status"))
		return 7;
	if (ends("fine-then-crash"))
		raise(SIGBUS);
	if (ends("second-run")) {
		how = "deadlock";
		return hd_run(NULL, first, NULL) == 0; /* the first run's verdict counts */
	}
	return code < 0 ? 1 : code;
}
