/* recording.c - reads the tapes of a trace.
 *
 * Owns:       struct recording.
 * Invariant:  an event is taken only if it is whole: it has its own number, and the writer had not come so far, when its count was read once more, that it
 *             could have begun to overwrite it. What is missing is counted.
 *
 * As in census.c, no number that was read is trusted. */
#define _GNU_SOURCE
#include "recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "obs/tracefile.h"
#include "say.h"

#define BATCH 16384 /* events in a read */
#define TAPES_MAX 1025
#define SIZE_MAX_OF_TAPE (UINT64_C(1) << HD__TRACE_ORDER_MAX)

void recording_init(struct recording *r, const struct hd__inside *inside)
{
	*r = (struct recording){ .inside = *inside, .events_max = EVENTS_MAX_DEFAULT };
	r->buffer = need(malloc(BATCH * sizeof(struct hd__event)));
}

static void make_reels(struct recording *r, unsigned tapes)
{
	r->count = tapes;
	r->reels = need(calloc(tapes, sizeof *r->reels));
}

void recording_drop(struct recording *r)
{
	for (unsigned i = 0; i < r->count; i++)
		free(r->reels[i].events);
	free(r->reels);
	free(r->actors);
	free(r->buffer);
	*r = (struct recording){ 0 };
}

/* ---- actors ---- */

static size_t place_of(const struct actor *actors, size_t room, int64_t pid)
{
	size_t i = (uint64_t)pid * UINT64_C(0x9e3779b97f4a7c15) >> 20 & (room - 1);

	while (actors[i].pid != 0 && actors[i].pid != pid)
		i = (i + 1) & (room - 1);
	return i;
}

static void make_room(struct recording *r)
{
	size_t room = r->actor_room != 0 ? 2 * r->actor_room : 1024;
	struct actor *actors = need(calloc(room, sizeof *actors));

	for (size_t i = 0; i < r->actor_room; i++)
		if (r->actors[i].pid != 0)
			actors[place_of(actors, room, r->actors[i].pid)] = r->actors[i];
	free(r->actors);
	r->actors = actors;
	r->actor_room = room;
}

struct actor *actor_of(struct recording *r, int64_t pid)
{
	if (2 * r->actor_count >= r->actor_room)
		make_room(r);
	struct actor *a = &r->actors[place_of(r->actors, r->actor_room, pid)];
	if (a->pid == 0) {
		a->pid = pid;
		r->actor_count++;
	}
	return a;
}

void recording_add_names(struct recording *r, const struct census *c)
{
	for (uint32_t i = 0; i < c->count; i++) {
		struct actor *a = actor_of(r, c->rows[i].pid);
		memcpy(a->name, c->rows[i].name, sizeof c->rows[i].name);
		a->entry = c->rows[i].function;
	}
}

static void take_name(struct recording *r, const struct hd__event *e)
{
	struct actor *a = actor_of(r, e->pid);

	if (e->kind == HD__TRACED_ENTRY)
		a->entry = e->more;
	else if (e->why < 4)
		for (unsigned i = 0; i < 8; i++) {
			char c = (char)(e->more >> 8 * i & 255);
			a->name[8 * e->why + i] = c == 0 || (c >= ' ' && c != 0x7f) || (signed char)c < 0 ? c : '?';
			if (c == 0)
				break;
		}
}

/* ---- events ---- */

static void push(struct reel *reel, const struct hd__event *e)
{
	if (reel->count == reel->room) {
		reel->room = reel->room != 0 ? 2 * reel->room : 4096;
		reel->events = need(realloc(reel->events, reel->room * sizeof *reel->events));
	}
	reel->events[reel->count++] = *e;
}

/* The place is marked, for the timeline: what went on there is not known. */
static void lose(struct reel *reel, uint64_t n)
{
	reel->lost += n;
	if (reel->count > 0 && reel->events[reel->count - 1].kind != HD__TRACED_NOTHING)
		push(reel, &(struct hd__event){ .kind = HD__TRACED_NOTHING, .when = reel->events[reel->count - 1].when });
}

static void take(struct recording *r, struct reel *reel, const struct hd__event *e)
{
	if (e->kind == HD__TRACED_NAME || e->kind == HD__TRACED_ENTRY) {
		if (e->pid > 0)
			take_name(r, e);
	} else if (r->events < r->events_max) {
		push(reel, e);
		r->events++;
	}
}

/* Takes n events, the first of which has the number `first`; those before `good` may have been overwritten. */
static void take_all(struct recording *r, struct reel *reel, uint64_t first, size_t n, uint64_t good)
{
	struct hd__event e;

	for (size_t i = 0; i < n; i++) {
		memcpy(&e, r->buffer + i * sizeof e, sizeof e);
		bool whole = first + i >= good && e.number == (uint32_t)(first + i) && e.kind > HD__TRACED_NOTHING &&
			     e.kind < HD__TRACED_KINDS && e.pid >= 0;
		if (whole)
			take(r, reel, &e);
		else
			lose(reel, 1);
	}
	reel->next = first + n;
}

/* ---- from memory ---- */

static bool read_number(struct memory *m, const struct copy *copy, int which, uint64_t *n)
{
	struct hd__inside_field f = copy->inside.field[which];

	*n = 0;
	return f.size > 0 && f.size <= sizeof *n && memory_read(m, copy->inside.sched + f.at, n, f.size);
}

bool trace_find(struct memory *m, const struct copy *copy, struct trace_place *p)
{
	struct hd__inside_field f = copy->inside.field[HD__INSIDE_TRACE_CLOCK];
	struct hd__trace_clock once;
	uint64_t count, on, from_start;

	*p = (struct trace_place){ .sched = copy->inside.sched };
	if (copy->inside.sched == 0 || f.size != sizeof p->clock ||
	    !read_number(m, copy, HD__INSIDE_TRACE_OBEYED, &p->obeyed) ||
	    !read_number(m, copy, HD__INSIDE_TRACE_TAPES, &p->tapes) ||
	    !read_number(m, copy, HD__INSIDE_TRACE_NTAPES, &count) || !read_number(m, copy, HD__INSIDE_TRACE_ON, &on) ||
	    !read_number(m, copy, HD__INSIDE_TRACE_FROM_START, &from_start))
		return false;
	do /* the program renews it now and then, in several stores */
		if (!memory_read(m, p->sched + f.at, &once, sizeof once) ||
		    !memory_read(m, p->sched + f.at, &p->clock, sizeof p->clock))
			return false;
	while (m->live && memcmp(&once, &p->clock, sizeof once) != 0);
	p->on = on;
	p->from_start = from_start;
	p->count = count <= TAPES_MAX ? (unsigned)count : 0;
	return true;
}

static bool read_tape(struct recording *r, struct memory *m, const struct trace_place *p, unsigned index)
{
	struct reel *reel = &r->reels[index];
	struct hd__tape tape;
	uint64_t at = p->tapes + index * sizeof tape, count;

	if (!memory_read(m, at, &tape, sizeof tape))
		return false;
	uint64_t size = tape.size, events = p->tapes + p->count * sizeof tape + index * size * sizeof(struct hd__event);
	if (size == 0 || (size & (size - 1)) != 0 || size > SIZE_MAX_OF_TAPE || tape.count < reel->next)
		return false;
	uint64_t oldest = tape.count > size ? tape.count - size : 0;
	if (oldest > reel->next) {
		if (reel->next != 0)
			lose(reel, oldest - reel->next);
		else
			reel->lost += oldest; /* of a flight recorder the beginning is not expected */
		reel->next = oldest;
	}
	for (uint64_t next = reel->next; next < tape.count;) {
		uint64_t n = tape.count - next, to_end = size - (next & (size - 1));
		n = n < to_end ? n : to_end;
		n = n < BATCH ? n : BATCH;
		if (!memory_read(m, events + (next & (size - 1)) * sizeof(struct hd__event), r->buffer,
				 (size_t)n * sizeof(struct hd__event)) ||
		    !memory_read(m, at, &count, sizeof count))
			return false;
		take_all(r, reel, next, (size_t)n, m->live && count >= size ? count - size + 1 : 0);
		next += n;
	}
	return true;
}

bool recording_read(struct recording *r, struct memory *m, const struct trace_place *p)
{
	if (r->count == 0 && p->count > 1)
		make_reels(r, p->count);
	bool read = p->tapes != 0 && p->count == r->count && p->count > 1;

	for (unsigned i = 0; read && i < r->count; i++)
		read = read_tape(r, m, p, i);
	if (read)
		r->clock = p->clock;
	return read;
}

/* ---- from a file ---- */

static void read_part(struct recording *r, FILE *f, unsigned index, const char *path)
{
	struct reel *reel = &r->reels[index];
	struct hd__trace_part part;

	if (fread(&part, sizeof part, 1, f) != 1)
		die("%s: the file is not whole: its end is missing", path);
	reel->lost = part.first;
	reel->next = part.first;
	for (uint64_t left = part.events; left > 0;) {
		size_t n = left < BATCH ? (size_t)left : BATCH;
		if (fread(r->buffer, sizeof(struct hd__event), n, f) != n)
			die("%s: the file is not whole: its end is missing", path);
		take_all(r, reel, reel->next, n, 0);
		left -= n;
	}
}

bool recording_open(struct recording *r, const char *path, int64_t *program)
{
	const char magic[16] = HD__TRACE_MAGIC;
	struct hd__trace_head head;
	struct hd__inside inside = { .version = 0 };
	struct hd__trace_name name;
	FILE *f = fopen(path, "re");

	if (f == NULL)
		return false;
	if (fread(&head, sizeof head, 1, f) != 1 || memcmp(head.magic, magic, sizeof magic) != 0) {
		fclose(f);
		return false;
	}
	size_t known = head.inside < sizeof inside ? head.inside : sizeof inside;
	if (head.version != HD__TRACE_FILE_VERSION || fread(&inside, known, 1, f) != 1 || inside.version != HD__INSIDE_VERSION)
		die("%s: a trace of another version of heddle: use the `heddle` that belongs to it", path);
	if (head.inside > sizeof inside || head.inside < sizeof inside || head.tapes < 2 || head.tapes > TAPES_MAX ||
	    head.workers >= head.tapes)
		die("%s: a trace of another build of heddle: use the `heddle` that belongs to it", path);
	recording_init(r, &inside);
	make_reels(r, head.tapes);
	r->workers = head.workers;
	r->events_max = SIZE_MAX;
	r->clock = head.clock;
	*program = head.program;
	for (unsigned i = 0; i < head.tapes; i++)
		read_part(r, f, i, path);
	for (uint32_t i = 0; i < head.names && fread(&name, sizeof name, 1, f) == 1; i++) {
		struct actor *a = name.pid > 0 ? actor_of(r, name.pid) : NULL;
		name.name[sizeof name.name - 1] = 0;
		if (a == NULL)
			continue;
		snprintf(a->name, sizeof a->name, "%s", name.name);
		a->entry = name.entry;
	}
	fclose(f);
	return true;
}
