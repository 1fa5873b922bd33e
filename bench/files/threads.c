/* threads.c - reads a file at random by pread, on as many kernel threads as reads are under way. */
#include <pthread.h>

#include "files.h"

enum { STACK = 64 * 1024 };

static struct files file;
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER; /* guards file.times */

static void *reader(void *arg)
{
	uint64_t seed = (uint64_t)(intptr_t)arg;
	void *buffer = files_buffer();
	struct histogram *times = calloc(1, sizeof *times);

	if (times == NULL)
		bench_die("calloc", ENOMEM);
	for (double now = bench_now(), then; now < file.end; now = then) {
		uint64_t block = files_next(&file, &seed);
		ssize_t n = pread(file.fd, buffer, FILES_BLOCK, (off_t)(block * FILES_BLOCK));
		files_check(n < 0 ? -errno : n, buffer, block);
		then = bench_now();
		histogram_add(times, (uint64_t)(then - now));
	}
	pthread_mutex_lock(&adding);
	histogram_merge(&file.times, times);
	pthread_mutex_unlock(&adding);
	free(times);
	free(buffer);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[FILES_READERS];
	pthread_attr_t small;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, STACK);
	file = files_open(argc, argv);
	for (int i = 0; i < FILES_READERS; i++) {
		int error = pthread_create(&threads[i], &small, reader, (void *)(intptr_t)(i + 1));
		if (error != 0)
			bench_die("pthread_create", error);
	}
	for (int i = 0; i < FILES_READERS; i++)
		pthread_join(threads[i], NULL);
	files_print(&file);
	return 0;
}
