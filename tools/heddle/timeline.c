/* timeline.c - a trace as a timeline that Perfetto shows: JSON in the Chrome trace format (docs/trace.schema.json).
 *
 *   process 1, "workers"     a track for each worker: which process it ran; when it had none
 *   process 2, "processes"   a track for each of the processes with the most events: running, ready, or the call that it waited in
 *   flows                    from the process that woke, spawned, handed over or sent, to the moment at which the other one ran, or received
 *   instants                 preempted, timed out, cancelled, moved to another worker; a worker woke
 *
 * Owns:       nothing that stays.
 * Invariant:  the slices of a track do not overlap; times of a track do not go back; a flow has both its ends, or is not written, and counted. */
#define _GNU_SOURCE
#include <heddle/process.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "process/process.h"
#include "recording.h"
#include "symbols.h"

enum { HD__TIMED_OUT = 2, HD__CANCELLED = 4 }; /* of wait/wait.h; see the assertion in rt/inside.c */
#define NEAR 100000			       /* ns by which the clocks of two workers may differ */
#define FUNCTIONS_MAX 256

/* An event with its place. */
struct moment {
	int64_t at; /* ns since the beginning */
	uint32_t reel;
	uint32_t index;
};

/* What is written. */
enum form { SLICE, FLOW_BEGIN, FLOW_END, INSTANT };
struct mark {
	int64_t at, length;
	uint8_t form, what; /* what: enum label */
	uint8_t why, level;
	bool of_process;
	uint32_t track, order; /* order: of two at the same time, which was there first */
	int64_t pid;	       /* slice on a worker's track: the process; flow, its kind is `what`; */
	uint64_t more;	       /* its number; or what a process waits for */
};

enum label {
	RUNS,
	READY,
	WAITS,
	SUSPENDED,
	IDLE,
	WAKE,
	SPAWN,
	HANDOFF,
	MESSAGE,
	PREEMPTED,
	QUANTUM,
	FORCED,
	TIMED_OUT,
	CANCELLED,
	MOVED,
	AWAKE
};
static const char *const labels[] = { "running",   "ready",	"waiting", "suspended", "idle",		"wake",
				      "spawn",	   "hand-off",	"message", "preempted", "quantum over", "preempted by a signal",
				      "timed out", "cancelled", "moved",   "woke" };

/* A source of a flow that has no end yet. */
struct origin {
	int64_t pid, at;
	enum label what; /* of a flow; 0: there is none */
};

/* What is known of a process while the events are gone through. */
struct life {
	int64_t pid;
	size_t events;
	uint32_t track; /* from 1; 0: it has none */
	uint32_t last;	/* its last event, from 1, in the order of time; 0: none yet */
	uint8_t state;	/* 0: not known */
	uint8_t why, level;
	bool known; /* its state began within the trace */
	int64_t since;
	uint64_t more;
	struct origin woken, sent;
};

/* A message under way, by its number. */
struct letter {
	uint64_t number;
	struct origin from;
};

struct timeline {
	struct recording *r;
	struct moment *moments;
	size_t count;
	struct life *lives; /* a hash table, as that of the actors */
	size_t life_count, life_room;
	struct letter *letters; /* likewise; number 0: free */
	size_t letter_count, letter_room;
	struct mark *marks;
	size_t mark_count, mark_room;
	struct runs { /* of each worker */
		int64_t pid, since;
		bool open, idle;
	} * runs;
	int64_t end;
	uint64_t flows;
	struct timeline_said *said;
};

/* ---- tables ---- */

static size_t hash(uint64_t key, size_t room)
{
	return key * UINT64_C(0x9e3779b97f4a7c15) >> 20 & (room - 1);
}

/* The place of a key in a table of which less than half is used. */
static size_t life_at(const struct life *lives, size_t room, int64_t pid)
{
	size_t i = hash((uint64_t)pid, room);

	while (lives[i].pid != 0 && lives[i].pid != pid)
		i = (i + 1) & (room - 1);
	return i;
}

/* The pointer is good until a process is met for the first time. */
static struct life *life_of(struct timeline *t, int64_t pid)
{
	size_t i = t->life_room != 0 ? life_at(t->lives, t->life_room, pid) : 0;

	if (t->life_room != 0 && t->lives[i].pid == pid)
		return &t->lives[i];
	if (2 * t->life_count >= t->life_room) {
		size_t room = t->life_room != 0 ? 2 * t->life_room : 1024;
		struct life *lives = need(calloc(room, sizeof *lives));
		for (size_t k = 0; k < t->life_room; k++)
			if (t->lives[k].pid != 0)
				lives[life_at(lives, room, t->lives[k].pid)] = t->lives[k];
		free(t->lives);
		t->lives = lives;
		t->life_room = room;
		i = life_at(lives, room, pid);
	}
	t->lives[i].pid = pid;
	t->life_count++;
	return &t->lives[i];
}

static size_t letter_at(const struct letter *letters, size_t room, uint64_t number)
{
	size_t i = hash(number, room);

	while (letters[i].number != 0 && letters[i].number != number)
		i = (i + 1) & (room - 1);
	return i;
}

static struct letter *letter_of(struct timeline *t, uint64_t number)
{
	if (2 * t->letter_count >= t->letter_room) {
		size_t room = t->letter_room != 0 ? 2 * t->letter_room : 1024;
		struct letter *letters = need(calloc(room, sizeof *letters));
		for (size_t k = 0; k < t->letter_room; k++)
			if (t->letters[k].number != 0)
				letters[letter_at(letters, room, t->letters[k].number)] = t->letters[k];
		free(t->letters);
		t->letters = letters;
		t->letter_room = room;
	}
	struct letter *letter = &t->letters[letter_at(t->letters, t->letter_room, number)];
	t->letter_count += letter->number == 0;
	letter->number = number;
	return letter;
}

static struct hd__event *event_of(const struct timeline *t, size_t i)
{
	return &t->r->reels[t->moments[i].reel].events[t->moments[i].index];
}

/* ---- the order of time ---- */

static int64_t ns_of(const struct hd__trace_clock *c, uint64_t when)
{
	double ticks = (double)(int64_t)(c->last_ticks - c->begin_ticks), ns = (double)(int64_t)(c->last_ns - c->begin_ns);
	double rate = ticks > 0 && ns > 0 ? ns / ticks : 1;

	return (int64_t)((double)(int64_t)(when - c->begin_ticks) * rate);
}

static int compare_moments(const void *a, const void *b)
{
	const struct moment *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	if (x->reel != y->reel)
		return x->reel < y->reel ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

/* What one worker wrote is in its order, whatever its clock says. What has no time is not shown: the time before the trace began, the beginning. */
static void put_in_order(struct timeline *t)
{
	size_t n = 0;

	for (unsigned i = 0; i < t->r->count; i++)
		n += t->r->reels[i].count;
	t->moments = need(malloc((n + 1) * sizeof *t->moments));
	for (unsigned i = 0; i < t->r->count; i++) {
		const struct reel *reel = &t->r->reels[i];
		int64_t before = 0;
		for (size_t k = 0; k < reel->count && k < UINT32_MAX; k++) {
			int64_t at = ns_of(&t->r->clock, reel->events[k].when);
			before = at > before && at < INT64_MAX / 2 ? at : before;
			t->moments[t->count++] = (struct moment){ before, i, (uint32_t)k };
		}
		t->end = before > t->end ? before : t->end;
	}
	qsort(t->moments, t->count, sizeof *t->moments, compare_moments);
}

/* The clocks of two CPUs may differ by so little that a process runs before it was woken: then the two events change places. */
static void mend_order(struct timeline *t)
{
	for (size_t i = 0; i < t->count; i++) {
		struct hd__event *e = event_of(t, i);
		if (e->kind != HD__TRACED_STATE || e->pid == 0)
			continue;
		struct life *life = life_of(t, e->pid);
		life->events++;
		if (life->last != 0) {
			struct moment *mine = &t->moments[i], *other = &t->moments[life->last - 1];
			struct hd__event *before = event_of(t, life->last - 1);
			if (e->how >> 4 != (before->how & 15) && (e->how & 15) == before->how >> 4 &&
			    mine->at - other->at < NEAR && mine->reel != other->reel) {
				struct moment m = *mine;
				*mine = (struct moment){ mine->at, other->reel, other->index };
				*other = (struct moment){ other->at, m.reel, m.index };
			}
		}
		life->last = (uint32_t)(i + 1);
	}
}

/* ---- marks ---- */

static void put(struct timeline *t, struct mark m)
{
	if (t->mark_count == t->mark_room) {
		t->mark_room = t->mark_room != 0 ? 2 * t->mark_room : 4096;
		t->marks = need(realloc(t->marks, t->mark_room * sizeof *t->marks));
	}
	m.order = (uint32_t)t->mark_count;
	t->marks[t->mark_count++] = m;
}

static void close_run(struct timeline *t, uint32_t worker, int64_t at)
{
	struct runs *runs = &t->runs[worker];

	if (runs->open)
		put(t, (struct mark){ .at = runs->since,
				      .length = at - runs->since,
				      .form = SLICE,
				      .what = runs->idle ? IDLE : RUNS,
				      .track = worker,
				      .pid = runs->pid });
	runs->open = false;
}

static void open_run(struct timeline *t, uint32_t worker, int64_t pid, int64_t at)
{
	close_run(t, worker, at);
	t->runs[worker] = (struct runs){ .pid = pid, .since = at, .open = true, .idle = pid == 0 };
}

static void close_state(struct timeline *t, struct life *life, int64_t at)
{
	static const uint8_t what[] = {
		[HD_READY] = READY, [HD_RUNNING] = RUNS, [HD_WAITING] = WAITS, [HD_SUSPENDED] = SUSPENDED
	};

	if (life->state == 0 || life->state >= HD_ENDED || life->track == 0)
		return;
	put(t, (struct mark){ .at = life->since,
			      .length = at - life->since,
			      .form = SLICE,
			      .what = what[life->state],
			      .why = life->state == HD_WAITING ? life->why : 0,
			      .level = life->level,
			      .of_process = true,
			      .track = life->track,
			      .pid = life->pid,
			      .more = life->more });
}

static void instant(struct timeline *t, int64_t pid, enum label what, int64_t at, uint64_t more)
{
	const struct life *life = life_of(t, pid);

	if (life->track == 0)
		return;
	put(t,
	    (struct mark){
		    .at = at, .form = INSTANT, .what = (uint8_t)what, .of_process = true, .track = life->track, .more = more });
	t->said->instants++;
}

/* An arrow from the slice in which the source ran to that in which `to` runs now. */
static void flow(struct timeline *t, struct origin *from, struct life *to, int64_t at)
{
	if (from->what == 0)
		return;
	const struct life *source = from->pid != 0 ? life_of(t, from->pid) : NULL;
	to = life_of(t, to->pid); /* the table may have moved */
	if (source == NULL || source->track == 0 || to->track == 0 || from->at > at) {
		t->said->half_flows++;
	} else {
		t->flows++;
		put(t, (struct mark){ .at = from->at,
				      .form = FLOW_BEGIN,
				      .what = (uint8_t)from->what,
				      .of_process = true,
				      .track = source->track,
				      .more = t->flows });
		put(t, (struct mark){ .at = at,
				      .form = FLOW_END,
				      .what = (uint8_t)from->what,
				      .of_process = true,
				      .track = to->track,
				      .more = t->flows });
		t->said->flows++;
	}
}

static void change_state(struct timeline *t, const struct moment *m, const struct hd__event *e)
{
	unsigned from = e->how >> 4, to = e->how & 15;
	struct life *life = life_of(t, e->pid);
	bool by_worker = m->reel < t->r->workers;

	if (by_worker && from == HD_RUNNING && t->runs[m->reel].open && t->runs[m->reel].pid == e->pid)
		close_run(t, m->reel, m->at);
	if (by_worker && to == HD_RUNNING)
		open_run(t, m->reel, e->pid, m->at);
	if (life->state == 0 && !life->known && from != 0) {
		life->state = (uint8_t)from; /* since before the trace */
		life->since = 0;
		life->level = e->level;
	}
	close_state(t, life, m->at);
	if (to == HD_READY && e->more != 0 && from != HD_RUNNING)
		life->woken = (struct origin){ (int64_t)e->more, m->at, from == 0 ? SPAWN : WAKE };
	if (to == HD_RUNNING) {
		struct origin woken = life->woken, sent = life->sent;
		if (woken.what == WAKE && e->why & HD__TRACED_HANDED)
			woken.what = HANDOFF;
		life->woken = life->sent = (struct origin){ 0 };
		life->since = m->at;
		flow(t, &woken, life, m->at);
		life = life_of(t, e->pid);
		flow(t, &sent, life, m->at);
		life = life_of(t, e->pid);
	}
	life->known = true;
	life->state = (uint8_t)to;
	life->since = m->at;
	life->why = e->why;
	life->level = e->level;
	life->more = to == HD_WAITING ? e->more : m->reel;
	if (to == HD_READY && from == HD_WAITING && (e->why == HD__TIMED_OUT || e->why == HD__CANCELLED))
		instant(t, e->pid, e->why == HD__TIMED_OUT ? TIMED_OUT : CANCELLED, m->at, 0);
}

static void receive(struct timeline *t, const struct moment *m, const struct hd__event *e)
{
	struct letter *letter = letter_of(t, e->more);
	struct origin from = letter->from;
	struct life *to = life_of(t, e->pid);

	letter->from = (struct origin){ 0 };
	if (from.what == 0)
		return; /* it was sent before the trace began */
	if (to->state == HD_RUNNING) {
		flow(t, &from, to, m->at);
		return;
	}
	if (to->sent.what != 0)
		t->said->half_flows++;
	to->sent = from; /* it was waiting: the arrow ends where it goes on */
}

static void go_through(struct timeline *t)
{
	for (size_t i = 0; i < t->count; i++) {
		const struct moment *m = &t->moments[i];
		const struct hd__event *e = event_of(t, i);
		bool by_worker = m->reel < t->r->workers;
		switch (e->kind) {
		case HD__TRACED_STATE:
			if (e->pid != 0)
				change_state(t, m, e);
			break;
		case HD__TRACED_RUNS:
			if (by_worker)
				open_run(t, m->reel, e->pid, m->at);
			struct life *runner = life_of(t, e->pid);
			close_state(t, runner, m->at);
			*runner = (struct life){ .pid = e->pid,
						 .events = runner->events,
						 .track = runner->track,
						 .last = runner->last,
						 .state = HD_RUNNING,
						 .known = true,
						 .since = m->at,
						 .more = m->reel };
			break;
		case HD__TRACED_IDLE:
			if (by_worker)
				open_run(t, m->reel, 0, m->at);
			break;
		case HD__TRACED_AWAKE:
			if (!by_worker)
				break;
			put(t, (struct mark){ .at = m->at, .form = INSTANT, .what = AWAKE, .track = m->reel });
			t->said->instants++;
			break;
		case HD__TRACED_WAKE:
			life_of(t, e->pid)->woken = (struct origin){ (int64_t)e->more, m->at, WAKE };
			break;
		case HD__TRACED_SEND: {
			struct letter *letter = letter_of(t, e->more);
			if (letter->from.what != 0)
				t->said->half_flows++;
			letter->from = (struct origin){ e->pid, m->at, MESSAGE };
			break;
		}
		case HD__TRACED_RECEIVE:
			receive(t, m, e);
			break;
		case HD__TRACED_PREEMPTED:
			instant(t, e->pid, e->why & HD__TRACED_QUANTUM ? QUANTUM : PREEMPTED, m->at, 0);
			break;
		case HD__TRACED_FORCED:
			instant(t, e->pid, FORCED, m->at, 0);
			break;
		case HD__TRACED_MOVE:
			instant(t, e->pid, MOVED, m->at, e->more);
			break;
		default: /* some are missing */
			if (by_worker && t->runs[m->reel].open) {
				struct life *life = t->runs[m->reel].pid != 0 ? life_of(t, t->runs[m->reel].pid) : NULL;
				if (life != NULL && life->state == HD_RUNNING) {
					close_state(t, life, m->at);
					life->state = 0;
					life->known = true;
				}
				close_run(t, m->reel, m->at);
			}
		}
	}
	for (uint32_t i = 0; i < t->r->workers && i < t->r->count; i++)
		close_run(t, i, t->end);
	for (size_t i = 0; i < t->life_room; i++) {
		struct life *life = &t->lives[i];
		if (life->pid == 0)
			continue;
		close_state(t, life, t->end);
		t->said->half_flows += (life->woken.what != 0) + (life->sent.what != 0);
	}
	for (size_t i = 0; i < t->letter_room; i++)
		t->said->half_flows += t->letters[i].from.what != 0;
}

/* ---- latencies ---- */

void timeline_latencies(struct recording *r, void (*fn)(unsigned priority, int64_t ns, void *arg), void *arg)
{
	struct timeline_said said = { 0 };
	struct timeline t = { .r = r, .said = &said };

	put_in_order(&t);
	mend_order(&t);
	for (size_t i = 0; i < t.count; i++) {
		const struct hd__event *e = event_of(&t, i);
		if (e->kind != HD__TRACED_STATE || e->pid == 0)
			continue;
		struct life *life = life_of(&t, e->pid);
		if ((e->how & 15) == HD_RUNNING && life->state == HD_READY)
			fn(e->level, t.moments[i].at - life->since, arg);
		life->state = e->how & 15;
		life->since = t.moments[i].at;
	}
	free(t.moments);
	free(t.lives);
}

/* ---- tracks ---- */

static int by_events(const void *a, const void *b)
{
	const struct life *x = *(struct life *const *)a, *y = *(struct life *const *)b;

	if (x->events != y->events)
		return x->events > y->events ? -1 : 1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static int by_id(const void *a, const void *b)
{
	const struct life *x = *(struct life *const *)a, *y = *(struct life *const *)b;
	uint32_t slot_of_x = (uint32_t)x->pid & (HD__SLOTS - 1), slot_of_y = (uint32_t)y->pid & (HD__SLOTS - 1);

	return slot_of_x != slot_of_y ? (slot_of_x < slot_of_y ? -1 : 1) : x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* The processes with the most events have tracks, in the order of their ids. */
static struct life **give_tracks(struct timeline *t, unsigned most, size_t *count)
{
	struct life **with = need(malloc((t->life_count + 1) * sizeof(struct life *)));
	size_t n = 0;

	for (size_t i = 0; i < t->life_room; i++)
		if (t->lives[i].pid != 0)
			with[n++] = &t->lives[i];
	qsort(with, n, sizeof(struct life *), by_events);
	t->said->without_track = n > most ? n - most : 0;
	n = n > most ? most : n;
	qsort(with, n, sizeof(struct life *), by_id);
	for (size_t i = 0; i < n; i++)
		with[i]->track = (uint32_t)(i + 1);
	t->said->tracks = *count = n;
	return with;
}

/* The functions that unnamed processes begin with. */
static void find_functions(struct timeline *t, pid_t program)
{
	static uintptr_t addresses[FUNCTIONS_MAX];
	static struct symbol symbols[FUNCTIONS_MAX];
	unsigned n = 0;

	for (size_t i = 0; i < t->r->actor_room; i++) {
		const struct actor *a = &t->r->actors[i];
		unsigned k = 0;
		if (a->pid == 0 || a->name[0] != 0 || a->entry == 0)
			continue;
		while (k < n && addresses[k] != a->entry + 1)
			k++;
		if (k == n && n < FUNCTIONS_MAX)
			addresses[n++] = (uintptr_t)a->entry + 1; /* what is looked up stands behind its instruction */
	}
	if (n > 0 && program > 0)
		look_up(program, addresses, n, symbols);
	for (size_t i = 0; i < t->r->actor_room; i++) {
		struct actor *a = &t->r->actors[i];
		for (unsigned k = 0; k < n && a->pid != 0 && a->name[0] == 0; k++)
			if (addresses[k] == a->entry + 1)
				snprintf(a->name, sizeof a->name, "%.39s", symbols[k].function);
	}
}

/* ---- JSON ---- */

static void print_text(FILE *to, const char *text)
{
	for (const unsigned char *s = (const unsigned char *)text; *s != 0; s++)
		if (*s == '"' || *s == '\\')
			fprintf(to, "\\%c", *s);
		else if (*s < ' ' || *s >= 0x7f)
			fputc('?', to);
		else
			fputc(*s, to);
}

static void print_name(struct timeline *t, FILE *to, int64_t pid)
{
	const struct actor *a = actor_of(t->r, pid);
	uint64_t generation = HD__GENERATION(pid);

	print_text(to, a->name);
	fprintf(to, "%s#%" PRIu32, a->name[0] != 0 ? " " : "", (uint32_t)pid & (HD__SLOTS - 1));
	if (generation > 1)
		fprintf(to, ".%" PRIu64, generation);
}

static void print_head(FILE *to, const char *what, unsigned process, uint32_t track)
{
	fprintf(to, "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%u,\"tid\":%" PRIu32 ",\"args\":", what, process, track);
}

static void print_tracks(struct timeline *t, FILE *to, struct life **with, size_t n)
{
	print_head(to, "process_name", 1, 0);
	fprintf(to, "{\"name\":\"workers\"}}");
	for (uint32_t i = 0; i < t->r->workers; i++) {
		fprintf(to, ",\n");
		print_head(to, "thread_name", 1, i + 1);
		fprintf(to, "{\"name\":\"worker %" PRIu32 "\"}},\n", i);
		print_head(to, "thread_sort_index", 1, i + 1);
		fprintf(to, "{\"sort_index\":%" PRIu32 "}}", i);
	}
	fprintf(to, ",\n");
	print_head(to, "process_name", 2, 0);
	fprintf(to, "{\"name\":\"processes\"}}");
	for (size_t i = 0; i < n; i++) {
		fprintf(to, ",\n");
		print_head(to, "thread_name", 2, (uint32_t)(i + 1));
		fprintf(to, "{\"name\":\"");
		print_name(t, to, with[i]->pid);
		fprintf(to, "\"}},\n");
		print_head(to, "thread_sort_index", 2, (uint32_t)(i + 1));
		fprintf(to, "{\"sort_index\":%zu}}", i);
	}
}

static void print_time(FILE *to, const char *what, int64_t ns)
{
	fprintf(to, ",\"%s\":%" PRId64 ".%03d", what, ns / 1000, (int)(ns % 1000));
}

/* What a process waits for, or where it runs. */
static void print_arguments(struct timeline *t, FILE *to, const struct mark *m)
{
	const struct hd__inside *d = &t->r->inside;

	fprintf(to, ",\"args\":{");
	if (!m->of_process && m->what == RUNS)
		fprintf(to, "\"process\":%" PRId64, m->pid);
	else if (m->of_process && m->what == RUNS)
		fprintf(to, "\"worker\":%" PRIu64 ",\"priority\":%u", m->more, m->level);
	else if (m->what == READY)
		fprintf(to, "\"priority\":%u", m->level);
	else if (m->what == WAITS && m->why >= HD_WAIT_FD_READ && m->why <= HD_WAIT_FILE_LOCK)
		fprintf(to, "\"fd\":%" PRIu64, m->more);
	else if (m->what == WAITS && m->more != 0 && m->why < HD__INSIDE_WAITS && d->wait[m->why].object[0] != 0)
		fprintf(to, "\"%s\":\"0x%" PRIx64 "\"", d->wait[m->why].object, m->more - d->wait[m->why].at);
	else if (m->form == INSTANT && m->what == MOVED)
		fprintf(to, "\"from\":%" PRIu64, m->more);
	fprintf(to, "}}");
}

static void print_mark(struct timeline *t, FILE *to, const struct mark *m)
{
	const struct hd__inside *d = &t->r->inside;
	static const char *const forms[] = { "X", "s", "f", "i" };

	fprintf(to, ",\n{\"ph\":\"%s\",\"pid\":%d,\"tid\":%" PRIu32, forms[m->form], m->of_process ? 2 : 1,
		m->of_process ? m->track : m->track + 1);
	print_time(to, "ts", m->at);
	if (m->form == SLICE)
		print_time(to, "dur", m->length);
	fprintf(to, ",\"name\":\"");
	if (m->form == SLICE && !m->of_process && m->what == RUNS)
		print_name(t, to, m->pid);
	else if (m->what == WAITS && m->why != 0 && m->why < HD__INSIDE_WAITS && d->wait[m->why].call[0] != 0)
		print_text(to, d->wait[m->why].call);
	else
		fputs(labels[m->what], to);
	fputc('"', to);
	if (m->form == FLOW_BEGIN || m->form == FLOW_END) {
		fprintf(to, ",\"cat\":\"%s\",\"id\":%" PRIu64 "%s}", labels[m->what], m->more,
			m->form == FLOW_END ? ",\"bp\":\"e\"" : "");
		return;
	}
	if (m->form == INSTANT)
		fprintf(to, ",\"s\":\"t\"");
	print_arguments(t, to, m);
}

static int compare_marks(const void *a, const void *b)
{
	const struct mark *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	if (x->form != y->form)
		return x->form < y->form ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

void timeline_write(struct recording *r, const struct timeline_wish *wish, FILE *to, struct timeline_said *said)
{
	struct timeline t = { .r = r, .said = said };
	size_t n;

	*said = (struct timeline_said){ 0 };
	t.runs = need(calloc(r->count + 1, sizeof *t.runs));
	put_in_order(&t);
	mend_order(&t);
	struct life **with = give_tracks(&t, wish->processes, &n);
	find_functions(&t, wish->program);
	for (unsigned i = 0; i < r->count; i++)
		said->lost += (size_t)r->reels[i].lost;
	said->seconds = (double)t.end / 1e9;
	fprintf(to, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
	print_tracks(&t, to, with, n);
	free(with); /* the lives move */
	go_through(&t);
	qsort(t.marks, t.mark_count, sizeof *t.marks, compare_marks);
	for (size_t i = 0; i < t.mark_count; i++) {
		print_mark(&t, to, &t.marks[i]);
		said->slices += t.marks[i].form == SLICE;
	}
	fprintf(to, "\n],\"otherData\":{\"format\":1,\"library\":\"");
	print_text(to, r->inside.library);
	fprintf(to,
		"\",\"workers\":%u,\"events\":%zu,\"lost\":%zu,\"processes\":%zu,\"without_track\":%zu,\"flows\":%zu,\"half_"
		"flows\":%zu}}\n",
		r->workers, r->events, said->lost, said->tracks, said->without_track, said->flows, said->half_flows);
	free(t.moments);
	free(t.lives);
	free(t.letters);
	free(t.marks);
	free(t.runs);
}
