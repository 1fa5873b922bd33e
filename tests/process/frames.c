/* process/frames.c - a frame of any size that does not fit on its process's stack is caught by the guard below it.
 *
 * Built twice. With -fstack-clash-protection (PROBED=1) the compiler touches every page of a frame in turn, and frames of every size must be
 * caught. Without it a frame is touched wherever its function begins to write: it must be caught if it is no larger than the guard. */
#include <alloca.h>
#include <heddle.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/stack.h"
#include "sched/worker.h"

#define FRAME_MAX ((size_t)1 << 20)
#define LEFT 512 /* bytes of stack when the frame is made: enough for a call */

typedef void (*framed)(size_t size);

/* A frame whose size only the running program knows; its lowest byte is written first. */
__attribute__((noinline)) static void variable(size_t size)
{
	volatile char *frame = alloca(size);

	frame[0] = 1;
}

/* Frames whose size the compiler knows. */
#define FIXED(kib)                                                                                                             \
	__attribute__((noinline)) static void fixed_##kib(size_t size)                                                         \
	{                                                                                                                      \
		volatile char frame[(size_t)(kib) << 10];                                                                      \
		frame[0] = (char)size;                                                                                         \
		(void)frame[0];                                                                                                \
	}
FIXED(1)
FIXED(4)
FIXED(20)
FIXED(48)
FIXED(64)
FIXED(100)
FIXED(256)
FIXED(1024)

static const struct {
	size_t size;
	framed make;
} fixed[] = { { 1 << 10, fixed_1 },   { 4 << 10, fixed_4 },	{ 20 << 10, fixed_20 },	  { 48 << 10, fixed_48 },
	      { 64 << 10, fixed_64 }, { 100 << 10, fixed_100 }, { 256 << 10, fixed_256 }, { 1024 << 10, fixed_1024 } };

static framed make;
static size_t frame_size;

/* A process that has LEFT bytes of its stack left, and makes the frame. */
static void *near_the_end(void *arg)
{
	size_t used = (size_t)((char *)__builtin_frame_address(0) - hd__self()->current->stack) - LEFT;
	volatile char *rest = alloca(used);

	rest[0] = 1;
	make(frame_size);
	return arg;
}

/* A neighbour above and below, for a frame that is too large to fall on. */
static void *bystander(void *arg)
{
	hd_yield();
	return arg;
}

static void *first(void *arg)
{
	hd_pid pid[3] = { hd_spawn(bystander, NULL), hd_spawn(near_the_end, NULL), hd_spawn(bystander, NULL) };

	for (int i = 0; i < 3; i++)
		if (hd_join(pid[i], NULL, HD_FOREVER) != 0)
			abort();
	return arg;
}

/* Whether a process that makes such a frame is stopped, with a message. */
static int is_caught(framed with, size_t size)
{
	int ends[2], status;
	char said[256];

	if (pipe(ends) != 0)
		exit(2);
	pid_t child = fork();
	if (child == 0) {
		dup2(ends[1], STDERR_FILENO);
		make = with;
		frame_size = size;
		_exit(hd_run(&(struct hd_config){ .workers = 1, .fixed = true }, first, NULL) != 0);
	}
	close(ends[1]);
	ssize_t n = read(ends[0], said, sizeof said - 1);
	while (n > 0 && read(ends[0], (char[256]){ 0 }, 256) > 0)
		;
	close(ends[0]);
	said[n > 0 ? n : 0] = 0;
	waitpid(child, &status, 0);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && strstr(said, "heddle: stack overflow in process") != NULL)
		return 1;
	fprintf(stderr, "a frame of %zu bytes, %s, was not caught: status %#x, \"%s\"\n", size,
		with == variable ? "of variable size" : "of fixed size", (unsigned)status, said);
	return 0;
}

int main(void)
{
	size_t limit = PROBED ? FRAME_MAX : hd__guard_size(), tried = 0, escaped = 0;

	for (size_t size = 1024; size <= limit; size += size < 128 << 10 ? 512 : 4096, tried++)
		escaped += !is_caught(variable, size);
	escaped += !is_caught(variable, limit), tried++;
	for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
		if (fixed[i].size <= limit)
			escaped += !is_caught(fixed[i].make, fixed[i].size), tried++;
	printf("%zu frames of up to %zu bytes, %zu of them not caught\n", tried, limit, escaped);
	return escaped == 0 && tried > 30 ? 0 : 1;
}
