/* promise.c - a value that will be there, one made from it, and one that never comes. */
#include <errno.h>
#include <heddle.h>
#include <stdio.h>
#include <string.h>

static void *six(void *arg)
{
	return arg;
}

static void *times(void *value, void *factor)
{
	return (void *)((intptr_t)value * (intptr_t)factor);
}

static void *fetch(void *arg)
{
	hd_fail(ECONNREFUSED); /* does not return */
	return arg;
}

static void *first(void *arg)
{
	hd_promise *p = hd_promise_spawn(six, (void *)6), *page = hd_promise_spawn(fetch, NULL);
	hd_promise *product = p != NULL ? hd_promise_then(p, times, (void *)7) : NULL;
	void *value;

	if (product != NULL && page != NULL) {
		if (hd_promise_value(product, &value, HD_FOREVER) == 0)
			printf("the value: %d\n", (int)(intptr_t)value);
		printf("has a value: %s\n", hd_promise_has_value(product) ? "yes" : "not yet");
		printf("the page: %s\n", strerror(-hd_promise_value(page, NULL, HD_FOREVER)));
	}
	hd_promise_release(p); /* NULL is fine */
	hd_promise_release(product);
	hd_promise_release(page);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
