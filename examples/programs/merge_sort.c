/* merge_sort.c - merge sort: a process sorts the left half while its parent sorts the right one.
 *
 * Below a certain size another process is not worth its cost. If there is no memory for one, the parent sorts both halves. */
#include "../check.h"

#include <heddle.h>
#include <string.h>

enum { N = 20000, ALONE = 1000 };

struct range {
	int *items, *spare; /* spare: room for as many */
	size_t n;
};

static int compare(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

static void merge(const struct range *left, const struct range *right, int *out)
{
	size_t l = 0, r = 0;

	while (l < left->n || r < right->n)
		if (r == right->n || (l < left->n && left->items[l] <= right->items[r]))
			*out++ = left->items[l++];
		else
			*out++ = right->items[r++];
}

static void *sort(void *arg)
{
	struct range *all = arg;

	if (all->n <= ALONE) {
		qsort(all->items, all->n, sizeof all->items[0], compare);
		return NULL;
	}
	size_t half = all->n / 2;
	struct range left = { all->items, all->spare, half };
	struct range right = { all->items + half, all->spare + half, all->n - half };
	hd_pid pid = hd_spawn(sort, &left);

	if (pid < 0)
		sort(&left);
	sort(&right);
	if (pid > 0)
		CHECK(hd_join(pid, NULL, HD_FOREVER) == 0);
	merge(&left, &right, all->spare);
	memcpy(all->items, all->spare, all->n * sizeof all->items[0]);
	return NULL;
}

static int items[N], spare[N];

static void *first(void *arg)
{
	unsigned number = 1;
	unsigned long before = 0, after = 0;
	struct range all = { items, spare, N };

	for (int i = 0; i < N; i++) {
		number = number * 1103515245u + 12345u;
		items[i] = (int)(number >> 8);
		before += (unsigned long)items[i];
	}
	sort(&all);
	for (int i = 0; i < N; i++) {
		CHECK(i == 0 || items[i - 1] <= items[i]);
		after += (unsigned long)items[i];
	}
	CHECK(before == after);
	printf("%d numbers are in order, from %d to %d\n", N, items[0], items[N - 1]);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
