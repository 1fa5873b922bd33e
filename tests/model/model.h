/* model/model.h - the rules of scheduling on one worker, as plainly as they can be said.
 *
 * No stacks, no threads, no bitmaps: arrays that are searched from the beginning. It is slow, and meant to be compared with
 * DESIGN's rules by reading. */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include <heddle/runtime.h>

#include "model/script.h"

/* Situations that scripts should get into, or they prove nothing. */
enum corner {
	CORNER_PREEMPTED,	   /* a higher priority took the worker */
	CORNER_YIELDED,		   /* to an equal */
	CORNER_LOWERED_ITSELF,	   /* below somebody ready */
	CORNER_MOVED_QUEUED,	   /* set_priority of a ready process */
	CORNER_MOVED_WAITING,	   /* of a waiting or suspended one */
	CORNER_GRANT_KEPT,	   /* granted while suspended */
	CORNER_SUSPENDED_IN_QUEUE, /* a waiting process was suspended */
	CORNER_BARGED,		   /* a signal went to a waiter while one of higher priority waited behind it */
	CORNER_HAND_OFF,	   /* past others of its level */
	CORNER_HAND_OFF_REFUSED,   /* because a higher priority was ready */
	CORNER_HAND_OFF_LIMIT,	   /* because there were 64 in a row */
	CORNER_HAND_BACK,	   /* to the joiner, past others of its level */
	CORNER_HAND_BACK_LIMIT,	   /* not any more, for there were 64 in a row */
	CORNER_SECOND_JOINER,
	CORNER_SELF_JOIN,
	CORNER_JOINED_ZOMBIE,
	CORNER_JOIN_DEAD,
	CORNER_JOIN_DETACHED,
	CORNERS
};

/* Plays a script to its end and writes down every step. Counts the corners it meets in `corners`, if not NULL. */
void model_run(const struct script *s, enum hd_preempted preempted, struct log *log, unsigned long *corners);

#endif
