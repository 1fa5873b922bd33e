/* pipeline.c - a pipeline: each stage is a process, and a bounded queue leads to the next one.
 *
 * A stage that has taken all its input closes its output, so that the end travels down the pipeline behind the last item. A stage
 * whose output was closed by the next one stops: its put answers -EPIPE. */
#include "../check.h"

#include <errno.h>
#include <heddle.h>

enum { STAGES = 3, PLACES = 2, NUMBERS = 10 };

struct stage {
	int (*change)(int);
	hd_queue *in, *out;
};

static int add_one(int n)
{
	return n + 1;
}

static int square(int n)
{
	return n * n;
}

static int halve(int n)
{
	return n / 2;
}

static void *run_stage(void *arg)
{
	const struct stage *s = arg;
	int n, err = 0;

	while (err == 0 && (err = hd_queue_next(s->in, &n, HD_FOREVER)) == 0) {
		n = s->change(n);
		err = hd_queue_put(s->out, &n, HD_FOREVER);
	}
	CHECK(err == -EPIPE);
	hd_queue_close(s->out);
	return NULL;
}

static void *feed(void *arg)
{
	hd_queue *out = arg;

	for (int n = 1; n <= NUMBERS; n++)
		CHECK(hd_queue_put(out, &n, HD_FOREVER) == 0);
	hd_queue_close(out);
	return NULL;
}

static void *first(void *arg)
{
	static int (*const changes[STAGES])(int) = { add_one, square, halve };
	struct stage stages[STAGES];
	hd_queue *between[STAGES + 1];
	struct hd_group pipeline = { 0 };
	int n;

	for (int i = 0; i <= STAGES; i++)
		CHECK((between[i] = hd_queue_new(sizeof(int), PLACES)) != NULL);
	CHECK(hd_group_spawn(&pipeline, feed, between[0]) > 0);
	for (int i = 0; i < STAGES; i++) {
		stages[i] = (struct stage){ changes[i], between[i], between[i + 1] };
		CHECK(hd_group_spawn(&pipeline, run_stage, &stages[i]) > 0);
	}
	while (hd_queue_next(between[STAGES], &n, HD_FOREVER) == 0)
		printf("%d\n", n);
	CHECK(hd_group_wait(&pipeline, HD_FOREVER) == 0);
	for (int i = 0; i <= STAGES; i++)
		hd_queue_drop(between[i]);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
