/* os/ring_none.c - no io_uring. */
#include "os/ring.h"

#include <errno.h>
#include <stddef.h>

struct hd__os_ring *hd__os_ring_new(unsigned operations, int *bell)
{
	(void)operations, (void)bell;
	return NULL;
}

void hd__os_ring_drop(struct hd__os_ring *ring)
{
	(void)ring;
}

int hd__os_ring_begin(struct hd__os_ring *ring, const struct hd__task *task, void *whose)
{
	(void)ring, (void)task, (void)whose;
	return -EAGAIN;
}

int hd__os_ring_cancel(struct hd__os_ring *ring, void *whose)
{
	(void)ring, (void)whose;
	return -EAGAIN;
}

void *hd__os_ring_take(struct hd__os_ring *ring, int *answer)
{
	(void)ring, (void)answer;
	return NULL;
}

int hd__os_ring_threads(void)
{
	return 0;
}
