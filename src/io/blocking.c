/* io/blocking.c - the program's own functions on threads of the pool. */
#include <heddle/blocking.h>

#include <errno.h>

#include "io/pool.h"
#include "life/life.h"
#include "os/tls.h"

struct call {
	struct hd__job job;
	void (*fn)(void *arg);
	void *arg;
	struct hd__tls *tls; /* the process's own; or NULL */
};

static void run(struct hd__job *job)
{
	struct call *call = (struct call *)job;

	if (call->tls != NULL && hd__self() == NULL) { /* else the process calls it itself */
		hd__os_tls_borrow(call->tls);
		call->fn(call->arg);
		hd__os_tls_give_back(call->tls);
	} else {
		call->fn(call->arg);
	}
}

int hd_blocking(void (*fn)(void *arg), void *arg)
{
	struct call call = { .job = { .run = run, .kind = HD__JOB_WAITED_FOR }, .fn = fn, .arg = arg };
	struct hd_worker *w;

	if (fn == NULL)
		return -EINVAL;
	int err = hd__begin_wait(&w, HD_FOREVER);
	if (err != 0)
		return err;
	if (w != NULL && w->current->nature & HD__OWN_TLS)
		call.tls = hd__own_tls_of(w->current);
	hd__leave_quietly(w);
	return hd__pool_run(&call.job, HD_FOREVER, HD_WAIT_BLOCKING);
}
