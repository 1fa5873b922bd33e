/* heddle.c - reads a file at random by hd_pread, in as many processes as reads are under way, on one worker. */
#include <heddle.h>

#include "files.h"

static struct files file;
static struct histogram times; /* of one worker: no lock */

static void *reader(void *arg)
{
	uint64_t seed = (uint64_t)(intptr_t)arg;
	void *buffer = files_buffer();

	for (double now = bench_now(), then; now < file.end; now = then) {
		uint64_t block = files_next(&file, &seed);
		files_check(hd_pread(file.fd, buffer, FILES_BLOCK, (off_t)(block * FILES_BLOCK), HD_FOREVER), buffer, block);
		then = bench_now();
		histogram_add(&times, (uint64_t)(then - now));
		hd_yield(); /* what is in the page cache needs no wait */
	}
	free(buffer);
	return NULL;
}

static void *first(void *arg)
{
	hd_pid pids[FILES_READERS];

	for (int i = 0; i < FILES_READERS; i++)
		pids[i] = bench_ok(hd_spawn(reader, (void *)(intptr_t)(i + 1)), "hd_spawn");
	for (int i = 0; i < FILES_READERS; i++)
		bench_ok(hd_join(pids[i], NULL, HD_FOREVER), "hd_join");
	return arg;
}

int main(int argc, char **argv)
{
	file = files_open(argc, argv);
	bench_ok(hd_run(&(struct hd_config){ .workers = 1, .fixed = true }, first, NULL), "hd_run");
	file.times = times;
	files_print(&file);
	return 0;
}
