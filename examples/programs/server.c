/* server.c - a select loop: one process that waits for requests, for the time of its report, and for the word to stop.
 *
 * Only the server touches its data: there is no lock. A request carries a promise, through which the answer comes back. */
#include "../check.h"

#include <heddle.h>

enum { CLIENTS = 4, EACH = 5 };

struct request {
	int amount;
	hd_promise *answer; /* the server sets it, and releases its reference */
};

static hd_queue *requests;
static struct hd_semaphore stop, reported;

static void *server(void *arg)
{
	enum { REQUEST, REPORT, STOP, CASES };
	int served = 0, sum = 0;
	struct request r;
	struct hd_case cases[CASES] = {
		[REQUEST] = hd_case_next(requests, &r),
		[REPORT] = hd_case_time(hd_after(HD_MS(2))),
		[STOP] = hd_case_semaphore(&stop),
	};

	for (;;) {
		int happened = hd_select(cases, CASES, HD_FOREVER);
		CHECK(happened >= 0 && cases[happened].err == 0);
		switch (happened) {
		case REQUEST:
			served++;
			sum += r.amount;
			CHECK(hd_promise_set(r.answer, (void *)(intptr_t)sum) == 0);
			hd_promise_release(r.answer);
			break;
		case REPORT:
			cases[REPORT].kind = HD_CASE_NOTHING; /* one report is enough */
			hd_semaphore_signal(&reported);
			break;
		case STOP:
			printf("%d requests, the sum is %d\n", served, sum);
			return arg;
		}
	}
}

static void *client(void *arg)
{
	void *sum, *before = NULL;

	for (int i = 1; i <= EACH; i++) {
		struct request r = { i, hd_promise_new() };
		CHECK(r.answer != NULL);
		hd_promise *answer = hd_promise_retain(r.answer); /* one reference for the server, one for us */
		CHECK(hd_queue_put(requests, &r, HD_FOREVER) == 0);
		CHECK(hd_promise_value(answer, &sum, HD_FOREVER) == 0);
		hd_promise_release(answer);
		CHECK((intptr_t)sum >= (intptr_t)before + i);
		before = sum;
	}
	return arg;
}

static void *first(void *arg)
{
	struct hd_group clients = { 0 };

	CHECK((requests = hd_queue_new(sizeof(struct request), CLIENTS)) != NULL);
	hd_pid pid = hd_spawn(server, NULL);
	CHECK(pid > 0);
	for (int i = 0; i < CLIENTS; i++)
		CHECK(hd_group_spawn(&clients, client, NULL) > 0);
	CHECK(hd_group_wait(&clients, HD_FOREVER) == 0);
	CHECK(hd_semaphore_wait(&reported, HD_FOREVER) == 0);
	hd_semaphore_signal(&stop);
	CHECK(hd_join(pid, NULL, HD_FOREVER) == 0);
	hd_queue_drop(requests);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
