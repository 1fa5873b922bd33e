/* signal.c - a server that reads its configuration again at SIGHUP, and ends at SIGTERM. */
#define _POSIX_C_SOURCE 200809L
#include <heddle.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static sigset_t signals;
static struct hd_semaphore reloaded;

static void *serve(void *arg)
{
	int err;

	while ((err = hd_sleep(HD_SEC(1))) == 0)
		; /* a request each second */
	printf("the server stops: %s\n", hd_error(err));
	return arg;
}

static void *listen_to_signals(void *server)
{
	int sig;

	while (hd_sigwait(&signals, &sig, HD_FOREVER) == 0 && sig == SIGHUP) {
		printf("hangup: the configuration is read again\n");
		hd_semaphore_signal(&reloaded);
	}
	printf("terminate\n");
	hd_cancel(*(hd_pid *)server);
	return NULL;
}

static void *first(void *arg)
{
	hd_pid server = hd_spawn(serve, arg), listener = hd_spawn(listen_to_signals, &server);

	if (server < 0 || listener < 0) {
		hd_shutdown(1);
		return arg;
	}
	/* What an operator would do, with kill(1). */
	kill(getpid(), SIGHUP);
	if (hd_semaphore_wait(&reloaded, HD_FOREVER) == 0)
		kill(getpid(), SIGTERM);
	if (hd_join(listener, NULL, HD_FOREVER) != 0 || hd_join(server, NULL, HD_FOREVER) != 0)
		hd_shutdown(1);
	return arg;
}

int main(void)
{
	sigemptyset(&signals);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL); /* so that none comes before the first wait */
	return hd_run(NULL, first, NULL) != 0;
}
