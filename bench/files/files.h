/* files.h - what the programs that read a file at random share: `program FILE direct|cached SECONDS`.
 *
 * FILES_READERS reads of FILES_BLOCK bytes are under way at any time, at random places; each block begins with its number, which the
 * program checks. It prints reads per second, its CPU time per read (us), and how long a read took (us). */
#ifndef BENCH_FILES_H
#define BENCH_FILES_H

#include <fcntl.h>
#include <sys/stat.h>

#include "../histogram.h"

enum { FILES_BLOCK = 4096, FILES_READERS = 64 };

struct files {
	int fd;
	uint64_t blocks;
	double end;		/* of the reading */
	double start, cpu;	/* at its start */
	struct histogram times; /* of all reads */
};

static inline struct files files_open(int argc, char **argv)
{
	struct files f = { .fd = -1 };
	struct stat status;

	if (argc != 4) {
		fprintf(stderr, "usage: program FILE direct|cached SECONDS\n");
		exit(2);
	}
	f.fd = open(argv[1], O_RDONLY | (strcmp(argv[2], "direct") == 0 ? O_DIRECT : 0));
	if (f.fd < 0 && errno == EINVAL)
		bench_skip("this file system has no O_DIRECT");
	if (f.fd < 0 || fstat(f.fd, &status) != 0)
		bench_die(argv[1], errno);
	posix_fadvise(f.fd, 0, 0, POSIX_FADV_RANDOM); /* nothing is read ahead */
	f.blocks = (uint64_t)status.st_size / FILES_BLOCK;
	f.start = bench_now();
	f.cpu = bench_cpu();
	f.end = f.start + atof(argv[3]) * 1e9;
	return f;
}

/* The next of a sequence of block numbers. */
static inline uint64_t files_next(const struct files *f, uint64_t *seed)
{
	*seed = bench_step(*seed);
	return (*seed >> 16) % f->blocks;
}

static inline void *files_buffer(void)
{
	void *buffer = aligned_alloc(FILES_BLOCK, FILES_BLOCK);
	if (buffer == NULL)
		bench_die("aligned_alloc", ENOMEM);
	return buffer;
}

/* Checks what a read of a block answered, and what it read. */
static inline void files_check(int64_t answer, const void *buffer, uint64_t block)
{
	uint64_t number;

	if (bench_ok(answer, "read") != FILES_BLOCK)
		bench_die("read: short", EIO);
	memcpy(&number, buffer, sizeof number);
	bench_same("read: another block", (int64_t)number, (int64_t)block);
}

static inline void files_print(const struct files *f)
{
	double took = bench_now() - f->start, reads = (double)f->times.count;

	bench_print("rate", reads / took * 1e9);
	bench_print("cpu", (bench_cpu() - f->cpu) / reads / 1e3);
	histogram_print(&f->times);
}
#endif
