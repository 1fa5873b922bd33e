/* promises.c - a graph of promises: each value is computed by a process of its own, as soon as what it depends on is there.
 *
 *     price of a book ---- times 3 ---.
 *                                      >--- total
 *     postage ------------------------'
 *
 * A promise that fails makes those fail that depend on it. */
#include "../check.h"

#include <errno.h>
#include <heddle.h>
#include <string.h>

static void *number(void *arg)
{
	return arg;
}

static void *times(void *value, void *factor)
{
	return (void *)((intptr_t)value * (intptr_t)factor);
}

/* Two values, taken by one process. */
static void *add(void *arg)
{
	hd_promise *const *terms = arg;
	void *a = NULL, *b = NULL;
	int err = hd_promise_value(terms[0], &a, HD_FOREVER);

	if (err == 0)
		err = hd_promise_value(terms[1], &b, HD_FOREVER);
	if (err != 0)
		hd_fail(err); /* does not return; the sum fails as its term did */
	return (void *)((intptr_t)a + (intptr_t)b);
}

static void *unknown(void *arg)
{
	hd_fail(ENOENT);
	return arg;
}

/* The total of an order of three, given where its price and its postage come from. Returns 0 and stores it, or the error. */
static int total_of(hd_entry price, hd_entry postage, intptr_t *total)
{
	hd_promise *one = hd_promise_spawn(price, (void *)12), *post = hd_promise_spawn(postage, (void *)5);
	CHECK(one != NULL && post != NULL);
	hd_promise *three = hd_promise_then(one, times, (void *)3);
	CHECK(three != NULL);
	hd_promise *sum = hd_promise_spawn(add, (hd_promise *[]){ three, post });
	CHECK(sum != NULL);

	void *value = NULL;
	int err = hd_promise_value(sum, &value, HD_FOREVER); /* the process that adds does not need its terms any more */
	*total = (intptr_t)value;
	hd_promise_release(sum);
	hd_promise_release(three);
	hd_promise_release(post);
	hd_promise_release(one);
	return err;
}

static void *first(void *arg)
{
	intptr_t total;

	CHECK(total_of(number, number, &total) == 0);
	printf("three books and the postage: %d\n", (int)total);
	printf("a book that does not exist: %s\n", strerror(-total_of(unknown, number, &total)));
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
