/* use_after_signal.c - a client waits for its request to be done, and then throws it away.
 *
 * Wrong:      the server signals that it is done and touches it once more.
 * Schedule:   the client runs between the signal and that touch.
 * Shows:      assert: the request is poisoned (if it were freed, anything might happen).
 * Fix:        the signal is the last that the server does with it. */
#include "planted.h"

enum { ALIVE = 1, POISON = 0xdead };

struct request {
	struct hd_semaphore done;
	_Atomic int state, touches;
};

static void touch(struct request *r)
{
	hd_checkpoint(); /* a moment later */
	MUST(r->state == ALIVE);
	r->touches++;
}

static void *serve(void *arg)
{
	struct request *r = arg;

#ifdef FIXED
	touch(r);
	hd_semaphore_signal(&r->done);
#else
	hd_semaphore_signal(&r->done);
	touch(r);
#endif
	return NULL;
}

PLANTED_MAIN
{
	static struct request request = { .state = ALIVE };
	hd_pid server = start(serve, &request);

	MUST(hd_semaphore_wait(&request.done, HD_FOREVER) == 0);
	request.state = POISON; /* and free it */
	finish(server);
}
