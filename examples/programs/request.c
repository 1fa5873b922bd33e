/* request.c - a request with a deadline, sent to several servers: the first answer counts, and the others are cancelled.
 *
 * The group makes sure that no query is left when ask returns, whether there was an answer, or time was up. A query notices that
 * it was cancelled by what its call answers. */
#include "../check.h"

#include <errno.h>
#include <heddle.h>

enum { SERVERS = 3 };

struct request {
	struct hd_group queries;
	struct hd_mutex lock; /* guards answer */
	int answer;	      /* 0: none yet */
};

struct query {
	struct request *request;
	int server;
	hd_time takes;
	bool cancelled;
};

static void *query(void *arg)
{
	struct query *q = arg;

	if (hd_sleep(q->takes) == -ECANCELED) { /* stands for: send the request, and wait for the answer */
		q->cancelled = true;
		return NULL;
	}
	CHECK(hd_mutex_lock(&q->request->lock, HD_FOREVER) == 0);
	if (q->request->answer == 0)
		q->request->answer = q->server;
	hd_mutex_unlock(&q->request->lock);
	hd_group_cancel(&q->request->queries);
	return NULL;
}

/* Asks all servers, which take so long. Returns the number of the server that answered; -ETIMEDOUT. */
static int ask(const hd_time takes[SERVERS], hd_time until)
{
	struct request request = { .answer = 0 };
	struct query queries[SERVERS];
	int cancelled = 0;

	for (int i = 0; i < SERVERS; i++) {
		queries[i] = (struct query){ &request, i + 1, takes[i], false };
		hd_pid pid = hd_group_spawn(&request.queries, query, &queries[i]);
		CHECK(pid > 0 || pid == -ECANCELED); /* there may be an answer before the last query is sent */
		if (pid < 0)
			queries[i].cancelled = true;
	}
	int err = hd_group_wait(&request.queries, until);
	for (int i = 0; i < SERVERS; i++)
		cancelled += queries[i].cancelled;
	CHECK(err == 0 ? cancelled == SERVERS - 1 : cancelled == SERVERS);
	return err == 0 ? request.answer : err;
}

static void *first(void *arg)
{
	const hd_time hour = HD_SEC(3600);

	int server = ask((hd_time[]){ hour, HD_MS(5), hour }, HD_FOREVER);
	printf("server %d answered, the others were cancelled\n", server);
	int err = ask((hd_time[]){ hour, hour, hour }, hd_after(HD_MS(5)));
	CHECK(err == -ETIMEDOUT);
	printf("no server answered in time, all were cancelled\n");
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
