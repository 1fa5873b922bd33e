/* hangs.c - three ways to hang, to be looked into: `hangs circle`, `hangs loops`, `hangs thread`. None of them ends by itself. */
#include <heddle.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct hd_mutex accounts, journal;
static struct hd_barrier both = HD_BARRIER(2);
static atomic_int looping;

static hd_pid spawn(const char *name, hd_entry entry, void *arg)
{
	return hd_spawn_with(&(struct hd_spawn){ .name = name }, entry, arg);
}

/* Two processes lock the same two mutexes, one in the other order. */
static void *transfer(void *arg)
{
	struct hd_mutex *one = arg, *other = one == &accounts ? &journal : &accounts;

	if (hd_mutex_lock(one, HD_FOREVER) == 0 && hd_barrier_wait(&both, HD_FOREVER) >= 0 &&
	    hd_mutex_lock(other, HD_FOREVER) == 0)
		printf("never printed\n");
	return NULL;
}

static void *client(void *arg)
{
	return hd_mutex_lock(&accounts, HD_FOREVER) == 0 ? arg : NULL;
}

/* Returns once the process waits for a mutex; false if there is no such process. */
static bool stands(hd_pid pid)
{
	struct hd_process_info info;

	while (hd_process_info(pid, &info) == 0 && hd_sleep(HD_MS(1)) == 0)
		if (info.state == HD_WAITING && info.why == HD_WAIT_MUTEX)
			return true;
	return false;
}

/* Each waits before the next one comes, so that it looks the same each time. */
static bool circle(void)
{
	hd_pid teller = spawn("teller", transfer, &accounts), auditor = spawn("auditor", transfer, &journal);
	bool all = stands(teller) && stands(auditor);

	for (int i = 0; i < 3; i++)
		all = all && stands(spawn("client", client, NULL));
	return all;
}

/* A loop that makes no heddle call, on every worker. */
static void *search(void *arg)
{
	atomic_fetch_add(&looping, 1);
	for (volatile unsigned long n = 0;; n++)
		;
	return arg;
}

static void *request(void *arg)
{
	return arg;
}

static bool loops(void)
{
	struct hd_stats stats;
	bool all = hd_stats(&stats) == 0;

	for (unsigned i = 1; all && i < stats.workers; i++)
		all = spawn("search", search, NULL) > 0;
	while (all && atomic_load(&looping) < (int)stats.workers - 1) /* the other workers take them */
		hd_yield();
	all = all && spawn("request", request, NULL) > 0;
	search(NULL);
	return all;
}

/* A kernel thread that heddle did not start has the mutex, and is busy elsewhere. */
static void *thread(void *arg)
{
	if (hd_mutex_lock(&accounts, HD_FOREVER) == 0)
		hd_event_set(arg);
	while (pause() != 0)
		;
	return NULL;
}

static bool foreign(void)
{
	static struct hd_event locked;
	pthread_t keeper;

	return pthread_create(&keeper, NULL, thread, &locked) == 0 && hd_event_wait(&locked, HD_FOREVER) == 0 &&
	       stands(spawn("client", client, NULL)) && stands(spawn("client", client, NULL));
}

static void *first(void *arg)
{
	bool fine = strcmp(arg, "circle") == 0	? circle()
		    : strcmp(arg, "loops") == 0 ? loops()
						: strcmp(arg, "thread") == 0 && foreign();

	while (fine && hd_sleep(HD_SEC(3600)) == 0)
		; /* without this deadline, heddle would report the deadlock and hd_run would return */
	hd_shutdown(1);
	return arg;
}

int main(int argc, char **argv)
{
	int err = hd_run(NULL, first, argc > 1 ? argv[1] : (char *)"");

	if (err != 0)
		fprintf(stderr, "hangs: circle, loops or thread? (%s)\n", err < 0 ? hd_error(err) : "nothing was done");
	return err != 0;
}
