/* waitgroup.c - a tree of processes, counted up before each begins and down when it is done. */
#include <heddle.h>
#include <stdio.h>

static struct hd_waitgroup visits;
static struct hd_mutex lock; /* guards the sum */
static int sum;

static void *visit(void *arg);

static void begin_visit(intptr_t node)
{
	hd_waitgroup_add(&visits, 1); /* before it begins, not inside it */
	if (hd_spawn_with(&(struct hd_spawn){ .detached = true }, visit, (void *)node) < 0)
		hd_waitgroup_done(&visits); /* it never will */
}

static void *visit(void *arg)
{
	intptr_t node = (intptr_t)arg;

	if (node < 8) {
		begin_visit(2 * node);
		begin_visit(2 * node + 1);
	}
	if (hd_mutex_lock(&lock, HD_FOREVER) == 0) {
		sum += (int)node;
		hd_mutex_unlock(&lock);
	}
	hd_waitgroup_done(&visits);
	return NULL;
}

static void *first(void *arg)
{
	begin_visit(1);
	if (hd_waitgroup_wait(&visits, HD_FOREVER) == 0)
		printf("the nodes 1 to 15 add up to %d\n", sum);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
