/* sched/runq.h - the ready processes of one worker: a list for each priority, and a bit for each list that is not empty. */
#ifndef SCHED_RUNQ_H
#define SCHED_RUNQ_H

#include "process/process.h"

struct hd__runq {
	uint64_t occupied[2];
	struct {
		struct hd_process *head, *tail;
	} levels[HD__LEVELS];
};

static inline unsigned hd__level(const struct hd_process *p)
{
	return (unsigned)p->priority - HD__PRIORITY_MIN;
}

/* The highest priority that is ready; 0 when none is. */
static inline int hd__runq_highest(const struct hd__runq *q)
{
	if (unlikely(q->occupied[1] != 0))
		return HD__PRIORITY_MIN + 127 - __builtin_clzll(q->occupied[1]);
	if (q->occupied[0] != 0)
		return HD__PRIORITY_MIN + 63 - __builtin_clzll(q->occupied[0]);
	return 0;
}

static inline void hd__runq_push_tail(struct hd__runq *q, struct hd_process *p)
{
	unsigned level = hd__level(p);

	p->next = NULL;
	p->prev = q->levels[level].tail;
	if (p->prev == NULL) {
		q->levels[level].head = p;
		q->occupied[level >> 6] |= UINT64_C(1) << (level & 63);
	} else {
		p->prev->next = p;
	}
	q->levels[level].tail = p;
}

static inline void hd__runq_push_head(struct hd__runq *q, struct hd_process *p)
{
	unsigned level = hd__level(p);

	p->prev = NULL;
	p->next = q->levels[level].head;
	if (p->next == NULL) {
		q->levels[level].tail = p;
		q->occupied[level >> 6] |= UINT64_C(1) << (level & 63);
	} else {
		p->next->prev = p;
	}
	q->levels[level].head = p;
}

static inline void hd__runq_remove(struct hd__runq *q, struct hd_process *p)
{
	unsigned level = hd__level(p);

	if (p->prev == NULL)
		q->levels[level].head = p->next;
	else
		p->prev->next = p->next;
	if (p->next == NULL)
		q->levels[level].tail = p->prev;
	else
		p->next->prev = p->prev;
	if (q->levels[level].head == NULL)
		q->occupied[level >> 6] &= ~(UINT64_C(1) << (level & 63));
}

/* The first of the highest level, which is `highest`. */
static inline struct hd_process *hd__runq_take(struct hd__runq *q, int highest)
{
	unsigned level = (unsigned)highest - HD__PRIORITY_MIN;
	struct hd_process *p = q->levels[level].head;

	q->levels[level].head = p->next;
	if (p->next == NULL) {
		q->levels[level].tail = NULL;
		q->occupied[level >> 6] &= ~(UINT64_C(1) << (level & 63));
	} else {
		p->next->prev = NULL;
	}
	return p;
}

#endif
