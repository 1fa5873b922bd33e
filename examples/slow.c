/* slow.c - a program that is slow, to be looked into: two processes compute, and clients wait for a worker. It does not end by itself. */
#include <heddle.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_ulong parsed;

/* It makes no heddle call: other processes of its priority wait until it is done. */
static void *parse(void *arg)
{
	for (;;)
		atomic_fetch_add_explicit(&parsed, 1, memory_order_relaxed);
	return arg;
}

static void *answer(void *arg)
{
	return arg;
}

static hd_pid spawn(const char *name, hd_entry entry)
{
	return hd_spawn_with(&(struct hd_spawn){ .name = name, .detached = true }, entry, NULL);
}

static void *first(void *arg)
{
	for (int i = 0; i < 2; i++)
		if (spawn("parser", parse) < 0)
			return arg;
	for (int i = 0; i < 3; i++)
		if (spawn("client", answer) < 0)
			return arg;
	return arg;
}

int main(void)
{
	int err = hd_run(NULL, first, NULL);

	if (err < 0)
		fprintf(stderr, "%s\n", hd_error(err));
	return err < 0;
}
