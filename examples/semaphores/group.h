/* group.h - a room for one group at a time: the first member in takes the room for all, the last one out gives it back.
 *
 * The room is a semaphore with one signal. Who comes while the first one waits for the room, waits behind it. */
#ifndef SEMAPHORES_GROUP_H
#define SEMAPHORES_GROUP_H

#include <heddle.h>

struct group {
	struct hd_semaphore mutex; /* guards members; held while the first one waits */
	int members;
};
#define GROUP                                                                                                                  \
	{                                                                                                                      \
		HD_SEMAPHORE(1), 0                                                                                             \
	}

static inline void group_enter(struct group *g, struct hd_semaphore *room)
{
	CHECK(hd_semaphore_wait(&g->mutex, HD_FOREVER) == 0);
	if (++g->members == 1)
		CHECK(hd_semaphore_wait(room, HD_FOREVER) == 0);
	hd_semaphore_signal(&g->mutex);
}

static inline void group_leave(struct group *g, struct hd_semaphore *room)
{
	CHECK(hd_semaphore_wait(&g->mutex, HD_FOREVER) == 0);
	if (--g->members == 0)
		hd_semaphore_signal(room);
	hd_semaphore_signal(&g->mutex);
}

#endif
