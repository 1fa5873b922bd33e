/* rt/overflow_in_malloc.c - a stack that overflows inside malloc is reported, though malloc cannot be called again.
 *
 * The program has a malloc of its own: with a lock that is not recursive, as the C library's has, and so hungry for stack, when told to be,
 * that the process overflows with the lock held. A handler that allocates would wait for that lock for ever. */
#include <heddle.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);

static pthread_mutex_t heap = PTHREAD_MUTEX_INITIALIZER;
static volatile int hungry, depth;

__attribute__((noinline)) static int eat(int n)
{
	volatile char frame[512];

	frame[0] = (char)n;
	return hungry ? eat(n + 1) + frame[0] : frame[0];
}

static void in_heap(void)
{
	pthread_mutex_lock(&heap);
	depth = hungry ? eat(0) : 0;
	pthread_mutex_unlock(&heap);
}

void *malloc(size_t size)
{
	in_heap();
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	in_heap();
	return __libc_calloc(n, size);
}

static void *overflow(void *arg)
{
	hungry = 1;
	free(malloc(100));
	return arg;
}

static void *first(void *arg)
{
	hd_pid pid = hd_spawn_with(&(struct hd_spawn){ .name = "hungry" }, overflow, NULL);

	return hd_join(pid, NULL, HD_FOREVER) == 0 ? arg : NULL;
}

int main(void)
{
	int ends[2], status;
	char said[4096];
	size_t n = 0;

	if (pipe(ends) != 0)
		return 2;
	pid_t child = fork();
	if (child == 0) {
		dup2(ends[1], STDERR_FILENO);
		alarm(10);
		_exit(hd_run(&(struct hd_config){ .workers = 1, .fixed = true }, first, NULL) != 0);
	}
	close(ends[1]);
	for (ssize_t got; n < sizeof said - 1 && (got = read(ends[0], said + n, sizeof said - 1 - n)) > 0;)
		n += (size_t)got;
	said[n] = 0;
	waitpid(child, &status, 0);
	printf("status %#x\n%s", (unsigned)status, said);
	/* dead of abort, with a message and a backtrace of which this program is part */
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && strstr(said, "\"hungry\"") != NULL &&
			       strstr(said, "overflow-in-malloc+0x") != NULL
		       ? 0
		       : 1;
}
