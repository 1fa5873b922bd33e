/* port/line.h - a list in order of arrival, from which anything can be taken out: a ring, known by its last link. Whether it is empty, any thread may look
 * (*). */
#ifndef PORT_LINE_H
#define PORT_LINE_H

#include <stddef.h>

#include "base/atomic.h"

struct hd__link {
	struct hd__link *next, *prev;
};

struct hd__line {
	struct hd__link *last; /* NULL: empty (*) */
};

static inline struct hd__link *hd__line_first(const struct hd__line *line)
{
	return line->last != NULL ? line->last->next : NULL;
}

/* The one after x; NULL: x is the last. */
static inline struct hd__link *hd__line_after(const struct hd__line *line, const struct hd__link *x)
{
	return x == line->last ? NULL : x->next;
}

/* The one before x; NULL: x is the first. */
static inline struct hd__link *hd__line_before(const struct hd__line *line, const struct hd__link *x)
{
	return x == line->last->next ? NULL : x->prev;
}

static inline void hd__line_push(struct hd__line *line, struct hd__link *x)
{
	struct hd__link *last = line->last;

	if (last == NULL) {
		x->next = x->prev = x;
	} else {
		x->next = last->next;
		x->prev = last;
		last->next->prev = x;
		last->next = x;
	}
	st_rlx(&line->last, x);
}

static inline void hd__line_remove(struct hd__line *line, struct hd__link *x)
{
	if (x->next == x) {
		st_rlx(&line->last, NULL);
		return;
	}
	x->prev->next = x->next;
	x->next->prev = x->prev;
	if (line->last == x)
		st_rlx(&line->last, x->prev);
}

#endif
