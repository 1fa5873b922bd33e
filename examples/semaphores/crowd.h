/* crowd.h - processes that are started together and joined together.
 *
 * Each gets a name and a number, so that the story of a schedule can be read. Zeroed memory is an empty crowd. */
#ifndef SEMAPHORES_CROWD_H
#define SEMAPHORES_CROWD_H

#include <heddle.h>
#include <stdio.h>
#include "../check.h"

enum { CROWD_MAX = 32 };

struct crowd {
	hd_pid pids[CROWD_MAX];
	int n;
};

/* Starts n processes more; each runs entry, and number_of tells it which of the n it is. */
static inline void crowd_start(struct crowd *c, int n, const char *name, hd_entry entry)
{
	char full[HD_NAME_SIZE];

	for (intptr_t i = 0; i < n; i++) {
		CHECK(c->n < CROWD_MAX);
		snprintf(full, sizeof(full), "%s %d", name, (int)i);
		c->pids[c->n] = hd_spawn_with(&(struct hd_spawn){ .name = full }, entry, (void *)i);
		CHECK(c->pids[c->n] > 0);
		c->n++;
	}
}

/* Waits until all of them have ended. */
static inline void crowd_join(struct crowd *c)
{
	while (c->n > 0)
		CHECK(hd_join(c->pids[--c->n], NULL, HD_FOREVER) == 0);
}

static inline int number_of(void *arg)
{
	return (int)(intptr_t)arg;
}

#endif
