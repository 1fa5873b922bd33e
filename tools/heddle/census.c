/* census.c - what all processes of a program do.
 *
 * Owns:       struct census.
 * Invariant:  a row is of one moment, or says that it is `changing`: its block, the record that it waits with and the owner of what it waits for are
 *             read, then the block once more. If its generation, its state, its switches and the word of its wait are the same, it has not run
 *             meanwhile, and all that was read belongs together.
 * Callers:    ps.c, waits.c.
 *
 * The blocks are read in batches of a thousand: a program with a million processes has 256 MB of them. What one needs of the records on the stacks is read in
 * one system call for each batch. Rows are of different moments: which processes wait for each other is asked again (row_is_same) where it matters.
 *
 * No number that was read is trusted: fields are looked up within what was read, the table has at most as many blocks as there can be, and nothing is
 * followed further than twice, so that no memory can make this read for ever. */
#include "census.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "process/process.h"

#define BATCH 1024	/* blocks */
#define BLOCK_MAX 4096	/* bytes of one */
#define RECORD_MAX 1024 /* bytes of a waiter's record, as far as we look */
#define WORKERS_MAX 1024
#define WORKER_MAX ((uint64_t)1 << 24)
#define TRIES 8	       /* for a row that changes */
#define TICKETS_MAX 16 /* of a behaviour, that we look at */
#define ASLEEP 1       /* HD__ASLEEP */

/* ---- fields ---- */

static struct hd__inside_field field(const struct census *c, int which)
{
	return c->copy->inside.field[which];
}

/* A number among `size` bytes; 0 when the field is not among them. */
static uint64_t number_in(const struct census *c, int which, const unsigned char *bytes, size_t size)
{
	struct hd__inside_field f = field(c, which);
	uint64_t n = 0;

	if ((f.size == 1 || f.size == 2 || f.size == 4 || f.size == 8) && f.at <= size && f.size <= size - f.at)
		memcpy(&n, bytes + f.at, f.size); /* least significant byte first, on all machines that heddle runs on */
	return n;
}

/* A number in a struct at an address; `read` says whether it could be read. */
static uint64_t number_at(const struct census *c, uint64_t at, int which, bool *read)
{
	struct hd__inside_field f = field(c, which);
	unsigned char bytes[8];
	uint64_t n = 0;

	*read = (f.size == 1 || f.size == 2 || f.size == 4 || f.size == 8) && memory_read(c->m, at + f.at, bytes, f.size);
	if (*read)
		memcpy(&n, bytes, f.size);
	return n;
}

/* ---- a row ---- */

/* Control characters, and bytes that are no UTF-8, become question marks. */
static void clean(char *text)
{
	for (unsigned char *s = (unsigned char *)text; *s != 0;) {
		unsigned length = *s < 0x80 ? 1 : *s >> 5 == 6 ? 2 : *s >> 4 == 14 ? 3 : *s >> 3 == 30 ? 4 : 0;
		bool good = length > 0 && *s >= ' ' && *s != 0x7f && *s != 0xc0 && *s != 0xc1 && *s < 0xf5;
		for (unsigned i = 1; good && i < length; i++)
			good = s[i] >> 6 == 2;
		if (good && ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0) || (s[0] == 0xf0 && s[1] < 0x90) ||
			     (s[0] == 0xf4 && s[1] >= 0x90)))
			good = false;
		if (!good)
			*s = '?';
		s += good ? length : 1;
	}
}

static int32_t worker_of(const struct census *c, uint64_t home)
{
	struct hd__inside_field f = field(c, HD__INSIDE_SCHED_WORKERS);
	uint64_t offset = home - (c->sched + f.at);

	return f.size != 0 && offset % f.size == 0 && offset / f.size < c->nworkers ? (int32_t)(offset / f.size) : -1;
}

/* The slot of a block, by its address; NONE: it is no block. */
static uint32_t slot_of(const struct census *c, uint64_t block)
{
	uint64_t size = field(c, HD__INSIDE_PROCESS).size, offset = block - c->blocks;

	return size != 0 && offset % size == 0 && offset / size < c->made ? (uint32_t)(offset / size) : NONE;
}

/* What a block says. False: it is free. */
static bool read_row(const struct census *c, uint32_t slot, const unsigned char *block, struct row *r)
{
	size_t size = field(c, HD__INSIDE_PROCESS).size;
	uint64_t control = number_in(c, HD__INSIDE_PROCESS_CONTROL, block, size);
	unsigned state = (unsigned)number_in(c, HD__INSIDE_PROCESS_STATE, block, size);
	struct hd__inside_field name = field(c, HD__INSIDE_PROCESS_NAME);

	if (HD__GENERATION(control) == 0 || control >> 63 != 0 || (control & HD__DEAD && state != HD_ENDED))
		return false;
	if (control & HD__DEAD)
		state = HD_ENDED;
	else if (state == 0 || state > HD_ENDED) /* spawned by a plain thread, on its way to its worker */
		state = control & HD__SUSPEND ? HD_SUSPENDED : HD_READY;
	*r = (struct row){
		.pid = (int64_t)(HD__GENERATION(control) << HD__SLOT_BITS | slot),
		.state = (uint8_t)state,
		.own = (uint8_t)HD__CONTROL_PRIORITY(control),
		.policy = (uint8_t)HD__CONTROL_POLICY(control),
		.nature = (uint8_t)number_in(c, HD__INSIDE_PROCESS_NATURE, block, size),
		.stack_class = (uint8_t)number_in(c, HD__INSIDE_PROCESS_STACK_CLASS, block, size),
		.suspended = control & HD__SUSPEND,
		.ending = control & HD__DOOMED,
		.detached = number_in(c, HD__INSIDE_PROCESS_BOND, block, size) == HD__DETACHED,
		.pinned = number_in(c, HD__INSIDE_PROCESS_PINS, block, size) != 0,
		.worker = worker_of(c, number_in(c, HD__INSIDE_PROCESS_HOME, block, size)),
		.fd = -1,
		.slot = slot,
		.first = NONE,
		.next = NONE,
		.since = (int64_t)number_in(c, HD__INSIDE_PROCESS_SINCE, block, size),
		.cpu_time = (int64_t)number_in(c, HD__INSIDE_PROCESS_CPU_TIME, block, size),
		.switches = number_in(c, HD__INSIDE_PROCESS_SWITCHES, block, size),
		.stack = number_in(c, HD__INSIDE_PROCESS_STACK, block, size),
		.function = number_in(c, HD__INSIDE_PROCESS_ENTRY, block, size),
		.wait = number_in(c, HD__INSIDE_PROCESS_WAIT, block, size),
		.waiter = number_in(c, HD__INSIDE_PROCESS_WAITER, block, size),
		.sp = number_in(c, HD__INSIDE_PROCESS_SP, block, size),
		.fp = number_in(c, HD__INSIDE_PROCESS_FP, block, size),
		.pc = number_in(c, HD__INSIDE_PROCESS_PC, block, size),
	};
	int effective = (int)number_in(c, HD__INSIDE_PROCESS_PRIORITY, block, size), lent = HD__CONTROL_BOOST(control);
	if (lent > r->own)
		r->lent = (uint8_t)lent;
	else if (effective > r->own)
		r->lent = (uint8_t)effective;
	if (state == HD_WAITING) {
		r->why = (uint8_t)number_in(c, HD__INSIDE_PROCESS_WHY, block, size);
		r->timed = r->wait >> HD__WAIT_BITS != 0;
	} else {
		r->waiter = 0;
	}
	if (r->why >= HD__INSIDE_WAITS)
		r->why = 0;
	if (name.at <= size && name.size <= size - name.at) {
		size_t n = name.size < sizeof r->name ? name.size : sizeof r->name;
		memcpy(r->name, block + name.at, n);
		r->name[n - (n > 0)] = 0;
		clean(r->name);
	}
	if (r->stack_class < 12 || r->stack_class > 30) /* 4 KiB to 1 GiB */
		r->stack = 0;
	return true;
}

static size_t record_size(const struct census *c)
{
	struct hd__inside_field f = field(c, HD__INSIDE_WAITER), port = field(c, HD__INSIDE_WAITER_PORT);
	uint64_t size = (uint64_t)port.at + port.size > f.size ? (uint64_t)port.at + port.size : f.size;

	return size < RECORD_MAX ? (size_t)size : RECORD_MAX;
}

/* What the record says that a row waits with. Returns where the owner of what it waits for stands; 0: nowhere. */
static uint64_t read_record(const struct census *c, const unsigned char *record, size_t size, struct row *r)
{
	unsigned why = (unsigned)number_in(c, HD__INSIDE_WAITER_WHY, record, size);
	uint64_t queue = number_in(c, HD__INSIDE_WAITER_QUEUE, record, size);

	if (slot_of(c, number_in(c, HD__INSIDE_WAITER_PROCESS, record, size)) != r->slot || why >= HD__INSIDE_WAITS)
		return 0; /* its stack is another's by now, or it has gone on */
	r->why = (uint8_t)why;
	if (why >= HD_WAIT_FD_READ && why <= HD_WAIT_FILE_LOCK)
		r->fd = (int32_t)number_in(c, HD__INSIDE_WAITER_NUMBER, record, size);
	else if (why == HD_WAIT_RECEIVE)
		r->object = number_in(c, HD__INSIDE_WAITER_PORT, record, size);
	else if (why == HD_WAIT_PROMISE && number_in(c, HD__INSIDE_WAITER_OPS, record, size) != 0)
		r->object = 0; /* hd_promise_all, hd_promise_any: several promises */
	else if (c->copy->inside.wait[why].object[0] != 0 && queue != 0)
		r->object = queue - c->copy->inside.wait[why].at;
	return why == HD_WAIT_CONDITION ? 0 : number_in(c, HD__INSIDE_WAITER_OWNER, record, size);
}

/* A behaviour that has not begun waits for a cown that another one has. */
static void read_behaviour(const struct census *c, uint64_t behaviour, struct row *r)
{
	struct hd__inside_field ticket = field(c, HD__INSIDE_BEHAVIOUR_TICKETS);
	bool read;
	uint64_t fn = number_at(c, behaviour, HD__INSIDE_BEHAVIOUR_FN, &read);

	if (!read)
		return;
	r->function = fn;
	if (r->why != HD_WAIT_COWN)
		return;
	uint64_t n = number_at(c, behaviour, HD__INSIDE_BEHAVIOUR_DISTINCT, &read);
	for (uint64_t i = 0; read && i < n && i < TICKETS_MAX; i++) {
		uint64_t cown =
			number_at(c, behaviour + ticket.at + i * ticket.size, HD__INSIDE_TICKET_USE, &read) & ~UINT64_C(3);
		uint64_t holder = read && cown != 0 ? number_at(c, cown, HD__INSIDE_COWN_HOLDER, &read) : 0;
		uint32_t slot = read && holder != 0 ? slot_of(c, holder) : NONE;
		if (slot == NONE || slot == r->slot)
			continue;
		bool known;
		uint64_t control = number_at(c, holder, HD__INSIDE_PROCESS_CONTROL, &known);
		if (!known || control & HD__DEAD)
			continue;
		r->object = cown;
		r->holder = (int64_t)(HD__GENERATION(control) << HD__SLOT_BITS | slot);
		return;
	}
}

/* The rest, in an order that asks the memory as seldom as can be: n rows with their blocks. */
static void read_waits(const struct census *c, struct row *rows, uint32_t n, const unsigned char *blocks, uint32_t first)
{
	static struct piece pieces[BATCH];
	static uint32_t which[BATCH];
	static uint64_t owners[BATCH];
	static unsigned char records[BATCH][RECORD_MAX];
	size_t size = field(c, HD__INSIDE_PROCESS).size, length = record_size(c), count = 0, owned = 0;

	for (uint32_t i = 0; i < n; i++) {
		const unsigned char *block = blocks + (rows[i].slot - first) * size;
		if (rows[i].waiter != 0) {
			pieces[count] = (struct piece){ rows[i].waiter, records[count], length, false };
			which[count++] = i;
		}
		if (rows[i].nature & HD__BEHAVIOUR)
			read_behaviour(c, number_in(c, HD__INSIDE_PROCESS_VALUE, block, size), &rows[i]);
	}
	c->m->ops->read(c->m, pieces, count);
	for (size_t i = 0; i < count; i++) {
		uint64_t owner = pieces[i].done ? read_record(c, records[i], length, &rows[which[i]]) : 0;
		if (owner == 0)
			continue;
		which[owned] = which[i];
		owners[owned] = 0;
		pieces[owned] = (struct piece){ owner, &owners[owned], sizeof owners[0], false };
		owned++;
	}
	c->m->ops->read(c->m, pieces, owned);
	for (size_t i = 0; i < owned; i++) {
		struct row *r = &rows[which[i]];
		int64_t holder = pieces[i].done ? (int64_t)owners[i] : 0;
		if (holder != r->pid && holder > INT32_MIN) /* a thread's number is not as low */
			r->holder = holder;
	}
}

static bool is_same(const struct row *a, const struct row *b)
{
	return a->pid == b->pid && a->state == b->state && a->switches == b->switches && a->wait == b->wait &&
	       a->waiter == b->waiter;
}

/* Reads one row anew until it is of one moment. False: it is gone. */
static bool read_again(const struct census *c, struct row *r)
{
	size_t size = field(c, HD__INSIDE_PROCESS).size;
	uint32_t slot = r->slot;
	unsigned char block[BLOCK_MAX];
	struct row after;

	for (int i = 0; i < TRIES; i++) {
		if (!memory_read(c->m, c->blocks + (uint64_t)slot * size, block, size) || !read_row(c, slot, block, r))
			return false;
		read_waits(c, r, 1, block, slot);
		if (memory_read(c->m, c->blocks + (uint64_t)slot * size, block, size) && read_row(c, slot, block, &after) &&
		    is_same(r, &after))
			return true;
	}
	r->changing = true;
	r->object = 0;
	r->holder = 0;
	r->fd = -1;
	return true;
}

bool row_is_same(const struct census *c, const struct row *r)
{
	size_t size = field(c, HD__INSIDE_PROCESS).size;
	unsigned char block[BLOCK_MAX];
	struct row now;

	return !c->m->live || (memory_read(c->m, c->blocks + (uint64_t)r->slot * size, block, size) &&
			       read_row(c, r->slot, block, &now) && is_same(r, &now));
}

void rows_look_again(const struct census *c, struct row *const *rows, size_t n, bool *same)
{
	size_t size = field(c, HD__INSIDE_PROCESS).size;

	for (size_t i = 0; i < n; i++)
		same[i] = !c->m->live;
	if (!c->m->live)
		return;
	struct piece *pieces = need(malloc((n + 1) * sizeof *pieces));
	unsigned char *blocks = need(malloc(n * size + 1));
	for (size_t i = 0; i < n; i++)
		pieces[i] = (struct piece){ c->blocks + (uint64_t)rows[i]->slot * size, blocks + i * size, size, false };
	c->m->ops->read(c->m, pieces, n);
	for (size_t i = 0; i < n; i++) {
		struct row now;
		same[i] = pieces[i].done && read_row(c, rows[i]->slot, blocks + i * size, &now) && is_same(rows[i], &now);
		if (same[i]) {
			rows[i]->sp = now.sp;
			rows[i]->fp = now.fp;
			rows[i]->pc = now.pc;
		}
	}
	free(blocks);
	free(pieces);
}

bool row_waits_for_same(const struct census *c, const struct row *r)
{
	struct row now = *r;

	return !c->m->live ||
	       (read_again(c, &now) && is_same(r, &now) && now.object == r->object && now.holder == r->holder && !now.changing);
}

/* ---- all rows ---- */

static void add_row(struct census *c, const struct row *r)
{
	if ((c->count & (c->count + 1)) == 0)
		c->rows = need(realloc(c->rows, ((size_t)2 * c->count + 2) * sizeof *c->rows));
	c->rows[c->count++] = *r;
}

/* Reads blocks, or of those that cannot be read at once, one by one: their places are zero then, which is a free block. */
static void read_blocks(struct census *c, uint32_t first, uint32_t n, unsigned char *blocks, bool counts)
{
	uint64_t size = field(c, HD__INSIDE_PROCESS).size, at = c->blocks + first * size;

	if (memory_read(c->m, at, blocks, n * size))
		return;
	bool first_is_there = memory_read(c->m, at, blocks, size),
	     last_is_there = memory_read(c->m, at + (n - 1) * size, blocks, size);
	if (!first_is_there && !last_is_there) { /* so it is with all of them: a stretch of memory is not there */
		memset(blocks, 0, n * size);
		c->missing += counts ? n : 0;
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		if (!memory_read(c->m, at + i * size, blocks + i * size, size)) {
			memset(blocks + i * size, 0, size);
			c->missing += counts;
		}
}

static void read_batch(struct census *c, uint32_t first, uint32_t n, unsigned char *blocks)
{
	static struct row rows[BATCH];
	size_t size = field(c, HD__INSIDE_PROCESS).size;
	uint32_t count = 0;

	read_blocks(c, first, n, blocks, true);
	for (uint32_t i = 0; i < n; i++)
		count += read_row(c, first + i, blocks + i * size, &rows[count]);
	if (count == 0)
		return;
	read_waits(c, rows, count, blocks, first);
	if (c->m->live)
		read_blocks(c, first, n, blocks, false);
	for (uint32_t i = 0; i < count; i++) {
		struct row after;
		bool there = read_row(c, rows[i].slot, blocks + (rows[i].slot - first) * size, &after);
		if ((there && is_same(&rows[i], &after)) || read_again(c, &rows[i]))
			add_row(c, &rows[i]);
	}
}

struct row *census_find(const struct census *c, int64_t pid)
{
	uint32_t slot = (uint32_t)pid & (HD__SLOTS - 1), low = 0, high = c->count;

	if (pid <= 0)
		return NULL;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (c->rows[middle].slot < slot)
			low = middle + 1;
		else
			high = middle;
	}
	return low < c->count && c->rows[low].pid == pid ? &c->rows[low] : NULL;
}

uint64_t census_number(const struct census *c, int worker, int which)
{
	struct hd__inside_field f = field(c, HD__INSIDE_SCHED_WORKERS);
	uint64_t at = worker < 0 ? c->sched : c->sched + f.at + (uint64_t)worker * f.size;
	bool read;
	uint64_t n = number_at(c, at, which, &read);

	return read ? n : 0;
}

bool census_has_ended(const struct census *c, int64_t pid)
{
	const struct row *r = census_find(c, pid);
	uint64_t size = field(c, HD__INSIDE_PROCESS).size;
	bool read;

	if (r != NULL || pid <= 0)
		return r != NULL && r->state == HD_ENDED;
	uint64_t control =
		number_at(c, c->blocks + ((uint64_t)pid & (HD__SLOTS - 1)) * size, HD__INSIDE_PROCESS_CONTROL, &read);
	return read && (HD__GENERATION(control) > HD__GENERATION(pid) ||
			(HD__GENERATION(control) == HD__GENERATION(pid) && control & HD__DEAD));
}

/* Which processes wait for which. */
static void link_rows(struct census *c)
{
	for (uint32_t i = c->count; i-- > 0;) {
		struct row *holder = census_find(c, c->rows[i].holder);
		if (holder == NULL)
			continue;
		c->rows[i].next = holder->first;
		holder->first = i;
		holder->waiters++;
	}
}

static void read_workers(struct census *c)
{
	struct hd__inside_field f = field(c, HD__INSIDE_SCHED_WORKERS);
	bool read;

	for (uint32_t i = 0; i < c->nworkers; i++) {
		uint64_t at = c->sched + f.at + (uint64_t)i * f.size;
		uint64_t current = number_at(c, at, HD__INSIDE_WORKER_CURRENT, &read);
		uint32_t slot = read ? slot_of(c, current) : NONE;
		c->workers[i].switches = number_at(c, at, HD__INSIDE_WORKER_SWITCHES, &read);
		c->workers[i].thread = (int32_t)number_at(c, at, HD__INSIDE_WORKER_THREAD, &read);
		c->workers[i].asleep = number_at(c, at, HD__INSIDE_WORKER_ATTENTION, &read) & ASLEEP;
		uint64_t control = slot != NONE ? number_at(c, current, HD__INSIDE_PROCESS_CONTROL, &read) : 0;
		const struct row *r =
			slot != NONE ? census_find(c, (int64_t)(HD__GENERATION(control) << HD__SLOT_BITS | slot)) : NULL;
		if (r != NULL && r->state == HD_RUNNING)
			c->workers[i].running = r->pid;
	}
	for (uint32_t i = 0; i < c->count; i++) {
		int32_t w = c->rows[i].worker;
		if (w >= 0 && c->rows[i].state == HD_READY)
			c->workers[w].ready++;
		if (w >= 0 && c->rows[i].state == HD_RUNNING && c->workers[w].running == 0)
			c->workers[w].running = c->rows[i].pid;
	}
}

struct row *census_runner(struct census *c, uint32_t worker)
{
	struct hd__inside_field f = field(c, HD__INSIDE_SCHED_WORKERS);
	size_t size = field(c, HD__INSIDE_PROCESS).size;
	unsigned char block[BLOCK_MAX];
	struct row now, *r;
	bool read;
	uint64_t current = number_at(c, c->sched + f.at + (uint64_t)worker * f.size, HD__INSIDE_WORKER_CURRENT, &read);
	uint32_t slot = read ? slot_of(c, current) : NONE;

	if (slot == NONE || !memory_read(c->m, current, block, size) || !read_row(c, slot, block, &now) ||
	    now.state != HD_RUNNING)
		return NULL;
	r = census_find(c, now.pid);
	if (r != NULL && !is_same(r, &now)) {
		now.waiters = r->waiters;
		now.first = r->first;
		now.next = r->next;
		*r = now;
	}
	return r;
}

/* What time it is there. Of a core file: the latest time that is written in it. */
static void find_now(struct census *c, int64_t coarse)
{
	const struct hd__inside *d = &c->copy->inside;
	struct timespec t;

	c->now = coarse;
	for (uint32_t i = 0; i < c->count; i++)
		if (c->rows[i].since > c->now && c->rows[i].since < INT64_MAX / 2)
			c->now = c->rows[i].since;
	if (c->m->live && d->start != INT64_MIN && clock_gettime(CLOCK_MONOTONIC, &t) == 0) {
		int64_t exact = (int64_t)((uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec - (uint64_t)d->start +
					  (uint64_t)d->beginning);
		if (exact >= c->now) { /* else its clock is another one, as in a namespace of time */
			c->now = exact;
			c->now_is_exact = true;
		}
	}
}

bool census_take(struct census *c, struct memory *m, const struct copy *copy, char *why, size_t why_size)
{
	const struct hd__inside *d = &copy->inside;
	bool read[5], fits;
	uint64_t sched = d->sched;

	*c = (struct census){ .m = m, .copy = copy, .sched = sched };
	c->blocks = number_at(c, sched, HD__INSIDE_SCHED_BLOCKS, &read[0]);
	uint64_t made = number_at(c, sched, HD__INSIDE_SCHED_MADE, &read[1]);
	uint64_t nworkers = number_at(c, sched, HD__INSIDE_SCHED_NWORKERS, &read[2]);
	int64_t coarse = (int64_t)number_at(c, sched, HD__INSIDE_SCHED_NOW, &read[3]);
	c->thread = (int64_t)number_at(c, sched, HD__INSIDE_SCHED_THREAD, &read[4]);
	c->stopping = number_at(c, sched, HD__INSIDE_SCHED_STOPPING, &fits) != 0;
	if (!read[0] || !read[1] || !read[2] || !read[3] || !read[4]) {
		snprintf(why, why_size,
			 m->live ? "its runtime has just ended" : "the core file does not have heddle's tables%s",
			 m->truncated ? ": it is truncated" : "");
		return false;
	}
	size_t size = field(c, HD__INSIDE_PROCESS).size;
	if (size == 0 || size > BLOCK_MAX || field(c, HD__INSIDE_SCHED_WORKERS).size > WORKER_MAX || nworkers == 0 ||
	    nworkers > WORKERS_MAX || made > HD__SLOTS || c->blocks > UINT64_MAX / 2) {
		snprintf(why, why_size,
			 "what stands where heddle's tables should be makes no sense: the memory was overwritten, or its "
			 "runtime has just ended");
		return false;
	}
	c->made = (uint32_t)made;
	c->nworkers = (uint32_t)nworkers;
	c->workers = need(calloc(c->nworkers, sizeof *c->workers));
	unsigned char *blocks = need(malloc(BATCH * size));
	for (uint32_t first = 0; first < c->made; first += BATCH)
		read_batch(c, first, c->made - first < BATCH ? c->made - first : BATCH, blocks);
	free(blocks);
	if (c->missing == c->made && c->made > 0) {
		snprintf(why, why_size, m->live ? "its runtime has just ended" : "the core file has none of its processes%s",
			 m->truncated ? ": it is truncated" : "");
		census_drop(c);
		return false;
	}
	link_rows(c);
	read_workers(c);
	find_now(c, coarse);
	return true;
}

void census_drop(struct census *c)
{
	free(c->rows);
	free(c->workers);
	c->rows = NULL;
	c->workers = NULL;
}

static int by_stack(const void *a, const void *b)
{
	uint64_t x = (*(struct row *const *)a)->stack, y = (*(struct row *const *)b)->stack;
	return x < y ? -1 : x > y;
}

void census_measure_stacks(struct census *c)
{
	struct row **rows = need(malloc(((size_t)c->count + 1) * sizeof *rows));
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->count; i++)
		if (c->rows[i].stack != 0 && c->rows[i].stack <= UINT64_MAX - (UINT64_C(1) << c->rows[i].stack_class))
			rows[n++] = &c->rows[i];
	qsort(rows, n, sizeof *rows, by_stack); /* the order in which the memory has them */
	for (uint32_t i = 0; i < n; i++) {
		uint64_t size = UINT64_C(1) << rows[i]->stack_class;
		rows[i]->stack_used = rows[i]->stack + size - c->m->ops->lowest_used(c->m, rows[i]->stack, size);
	}
	free(rows);
}

/* ---- words ---- */

const char *id_of(int64_t pid, char text[WHO_SIZE])
{
	uint64_t generation = HD__GENERATION(pid);
	int n = snprintf(text, WHO_SIZE, "#%u", (unsigned)(pid & (HD__SLOTS - 1)));

	if (generation > 1)
		snprintf(text + n, (size_t)(WHO_SIZE - n), ".%" PRIu64, generation);
	return text;
}

const char *who(const struct census *c, int64_t pid, char text[WHO_SIZE])
{
	char id[WHO_SIZE], more[64];
	const struct row *r = census_find(c, pid);

	if (pid < 0) {
		c->m->ops->thread(c->m, -pid, more, sizeof more);
		if (-pid == c->thread)
			snprintf(text, WHO_SIZE, "the thread that called hd_run%.60s", more);
		else
			snprintf(text, WHO_SIZE, "thread %" PRId64 "%.60s", -pid, more);
		return text;
	}
	snprintf(text, WHO_SIZE, "%.32s %.40s%s",
		 r != NULL && r->name[0] != 0 ? r->name
		 : r != NULL		      ? kind_of(r)
					      : "process",
		 id_of(pid, id), census_has_ended(c, pid) ? ", which has ended" : "");
	return text;
}

const char *call_of(const struct census *c, const struct row *r)
{
	const char *call = c->copy->inside.wait[r->why].call;
	return call[0] != 0 ? call : "an unknown call";
}

const char *object_kind(const struct census *c, const struct row *r)
{
	return r->why == HD_WAIT_RECEIVE ? "port" : r->why == HD_WAIT_COWN ? "cown" : c->copy->inside.wait[r->why].object;
}

const char *object_of(const struct census *c, const struct row *r, char text[WHO_SIZE])
{
	text[0] = 0;
	if (r->object != 0)
		snprintf(text, WHO_SIZE, "%s 0x%" PRIx64, object_kind(c, r), r->object);
	else if (r->fd >= 0)
		snprintf(text, WHO_SIZE, "fd %d", (int)r->fd);
	return text;
}

const char *kind_of(const struct row *r)
{
	return r->nature & HD__BEHAVIOUR ? "behaviour" : r->nature & HD__MACHINE ? "machine" : "process";
}

const char *state_of(const struct row *r)
{
	static const char *const names[] = { "free", "ready", "running", "waiting", "suspended", "ended" };
	return names[r->state <= HD_ENDED ? r->state : 0];
}

const char *policy_of(const struct row *r)
{
	static const char *const names[] = { "default", "fifo", "rr", "io" };
	return names[r->policy & 3];
}

int64_t age_of(const struct census *c, const struct row *r)
{
	uint64_t age = (uint64_t)c->now - (uint64_t)r->since;

	return c->now > r->since && age <= INT64_MAX ? (int64_t)age : 0;
}

const char *span(int64_t from, int64_t to, char text[32])
{
	double seconds = to > from ? (double)((uint64_t)to - (uint64_t)from) / 1e9 : 0;

	if (seconds < 1000)
		snprintf(text, 32, "%.3f s", seconds);
	else if (seconds < 1e5)
		snprintf(text, 32, "%.0f s", seconds);
	else
		snprintf(text, 32, "%.1f h", seconds / 3600);
	return text;
}
