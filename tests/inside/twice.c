/* twice.c - a program that has heddle inside, and loads a library of heddle besides: `twice LIBRARY`. A runtime runs in each. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <heddle.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int (*other_run)(const struct hd_config *config, hd_entry main, void *arg);
static int (*other_sleep)(hd_time ns);
static pthread_barrier_t both;

static void *sleep_there(void *arg)
{
	pthread_barrier_wait(&both);
	return other_sleep(HD_SEC(1000)) == 0 ? arg : NULL;
}

static void *run_there(void *arg)
{
	const struct hd_config config = { .workers = 1, .fixed = true };

	if (other_run(&config, sleep_there, NULL) != 0)
		abort();
	return arg;
}

static void *sleep_here(void *arg)
{
	pthread_barrier_wait(&both);
	printf("ready\n");
	fflush(stdout);
	return hd_sleep(HD_SEC(1000)) == 0 ? arg : NULL;
}

int main(int argc, char **argv)
{
	const struct hd_config config = { .workers = 3, .fixed = true };
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	pthread_t thread;

	if (library == NULL) {
		fprintf(stderr, "twice: %s\n", argc > 1 ? dlerror() : "which library?");
		return 2;
	}
	*(void **)&other_run = dlsym(library, "hd_run");
	*(void **)&other_sleep = dlsym(library, "hd_sleep");
	if (other_run == NULL || other_sleep == NULL || pthread_barrier_init(&both, NULL, 2) != 0 ||
	    pthread_create(&thread, NULL, run_there, NULL) != 0)
		return 3;
	return hd_run(&config, sleep_here, NULL) != 0;
}
