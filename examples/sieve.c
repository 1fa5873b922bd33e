/* sieve.c - prime numbers from a row of processes: each knows one prime and lets pass what it does not divide.
 *
 * A channel of one place, made of two semaphores, joins each process to the next. The first number that reaches the end of
 * the row is a prime and makes the next process. A 0 is the end: it goes down the row, and each process ends behind it. */
#include "check.h"

#include <heddle.h>

enum { LIMIT = 550 };

struct channel {
	struct hd_semaphore empty, full;
	int value;
};

static struct channel *channel_new(void)
{
	struct channel *c = calloc(1, sizeof *c);

	CHECK(c != NULL);
	hd_semaphore_signal(&c->empty);
	return c;
}

static void put(struct channel *c, int value)
{
	CHECK(hd_semaphore_wait(&c->empty, HD_FOREVER) == 0);
	c->value = value;
	hd_semaphore_signal(&c->full);
}

static int take(struct channel *c)
{
	CHECK(hd_semaphore_wait(&c->full, HD_FOREVER) == 0);
	int value = c->value;
	hd_semaphore_signal(&c->empty);
	return value;
}

static void *sieve(void *arg)
{
	struct channel *in = arg, *out = NULL;
	int prime = take(in), n;
	hd_pid next = 0;

	printf("%d\n", prime);
	while ((n = take(in)) != 0) {
		if (n % prime == 0)
			continue;
		if (out == NULL) {
			out = channel_new();
			CHECK((next = hd_spawn(sieve, out)) > 0);
		}
		put(out, n);
	}
	free(in);
	if (out != NULL) {
		put(out, 0);
		CHECK(hd_join(next, NULL, HD_FOREVER) == 0);
	}
	return NULL;
}

static void *first(void *arg)
{
	struct channel *numbers = channel_new();
	hd_pid two = hd_spawn(sieve, numbers);

	CHECK(two > 0);
	for (int i = 2; i < LIMIT; i++)
		put(numbers, i);
	put(numbers, 0);
	CHECK(hd_join(two, NULL, HD_FOREVER) == 0);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
