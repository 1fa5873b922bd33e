/* rt/trace.c - HEDDLE_TRACE: a trace from the start of the runtime, in a file (obs/tracefile.h).
 *
 * Owns:       the file's name. The file is written anew each time: by a report, and at the end.
 * Callers:    hd_run; reports, on a worker or the watcher; the simulator, when a run cannot go on. Workers may record meanwhile: what they overwrite while it is
 *             copied is left out.
 *
 * A file of binary events and no JSON: it is written by programs that are in trouble. */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/variable.h"
#include "obs/tracefile.h"
#include "os/file.h"
#include "os/memory.h"
#include "rt/inside.h"
#include "rt/rt.h"
#include "sched/gate.h"
#include "sched/record.h"
#include "sim/sim.h"

#define ORDER 16 /* 65,536 events, 2 MiB, for each worker */
#define EVENTS 1024
#define NAMES 64

static char path[PATH_MAX];
static unsigned char writing; /* lock */

/* The last ":SIZE" of the text is taken off it; 0: it is none. */
static unsigned long long take_size(char *text)
{
	char *colon = strrchr(text, ':'), *end;

	if (colon == NULL || !isdigit((unsigned char)colon[1]))
		return 0;
	errno = 0;
	unsigned long long size = strtoull(colon + 1, &end, 10);
	unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : 0;
	if (errno != 0 || end[shift != 0] != 0 || size > UINT64_MAX >> 20)
		return 0;
	*colon = 0;
	return size << shift != 0 ? size << shift : 1;
}

static void write_sim(void)
{
	struct hd__sched *sched = hd__gate_enter();

	if (sched == NULL)
		return;
	hd__trace_write(sched);
	hd__gate_leave();
}

int hd__trace_configure(struct hd__sched *sched)
{
	const char *text = hd__variable("HEDDLE_TRACE");
	unsigned order = ORDER;

	if (text == NULL)
		return 0;
	if (strlen(text) >= sizeof path) {
		hd__complain("heddle: HEDDLE_TRACE: the name of the file is too long\n");
		return -ENAMETOOLONG;
	}
	snprintf(path, sizeof path, "%s", text);
	unsigned long long size = take_size(path);
	if (size > UINT64_C(1) << HD__TRACE_ORDER_MAX) {
		hd__complain("heddle: HEDDLE_TRACE=%s: at most 4M events for each worker\n", text);
		return -EINVAL;
	}
	if (size != 0)
		for (order = HD__TRACE_ORDER_MIN; UINT64_C(1) << order < size;)
			order++;
	int err = hd__trace_from_start(sched, order);
	if (err != 0)
		hd__complain("heddle: HEDDLE_TRACE=%s: there is no memory for so many events\n", text);
	hd__sim_leaves = write_sim;
	return err;
}

struct out {
	int fd;
	int64_t at;
	int err;
};

static void put(struct out *out, const void *bytes, size_t n)
{
	struct iovec piece = { (void *)(uintptr_t)bytes, n };

	while (out->err == 0 && piece.iov_len > 0) {
		ssize_t moved = hd__os_file_move(out->fd, true, &piece, 1, out->at);
		if (moved == -EINTR)
			continue;
		if (moved <= 0) {
			out->err = moved < 0 ? (int)-moved : EIO;
			return;
		}
		out->at += moved;
		piece.iov_base = (char *)piece.iov_base + moved;
		piece.iov_len -= (size_t)moved;
	}
}

/* A part without its good events stands in the file before they are known: it is written again behind them. */
static void put_tape(struct out *out, struct hd__tape *tape)
{
	struct hd__event events[EVENTS];
	uint64_t count = ld_acq(&tape->count); /* pairs with hd__tape_put */
	struct hd__trace_part part = { .first = count > tape->size ? count - tape->size : 0 };
	int64_t at = out->at;

	put(out, &part, sizeof part);
	for (uint64_t next = part.first; next < count && out->err == 0;) {
		uint64_t at_end = tape->size - (next & (tape->size - 1)), n = count - next;
		n = n < at_end ? n : at_end;
		n = n < EVENTS ? n : EVENTS;
		(void)hd__os_peek(events, &tape->events[next & (tape->size - 1)], (size_t)n * sizeof events[0]);
		uint64_t last = ld_acq(&tape->count), good = last < tape->size ? 0 : last - tape->size + 1;
		uint64_t lost = good <= next ? 0 : good - next < n ? good - next : n;
		if (lost > 0) { /* what came before is of no use without these */
			part.first = next + lost;
			part.events = 0;
			out->at = at + (int64_t)sizeof part;
		}
		put(out, events + lost, (size_t)(n - lost) * sizeof events[0]);
		part.events += n - lost;
		next += n;
	}
	int64_t end = out->at;
	out->at = at;
	put(out, &part, sizeof part);
	out->at = end;
}

/* Those that live, or have ended and not been joined. */
static uint32_t put_names(struct out *out, struct hd__sched *sched)
{
	struct hd__trace_name names[NAMES];
	uint32_t n = 0, all = 0;

	for (uint32_t slot = 0; slot < ld_acq(&sched->table.made) && out->err == 0; slot++) {
		struct hd_process *p = &sched->table.blocks[slot];
		if (ld_acq(&p->control) & HD__DEAD)
			continue;
		names[n] = (struct hd__trace_name){ .pid = hd__pid(&sched->table, p), .entry = hd__entry_of(p) };
		for (unsigned i = 0; i < sizeof names[n].name - 1 && (names[n].name[i] = ld_acq(&p->name[i])) != 0; i++)
			;
		if (++n == NAMES) {
			put(out, names, sizeof names);
			all += n;
			n = 0;
		}
	}
	put(out, names, n * sizeof names[0]);
	return all + n;
}

/* The file's name, with the number of the program for %p. */
static void expand(char name[PATH_MAX])
{
	const char *mark = strstr(path, "%p");

	if (mark == NULL)
		memcpy(name, path, sizeof path);
	else
		snprintf(name, PATH_MAX, "%.*s%d%s", (int)(mark - path), path, (int)getpid(), mark + 2);
}

void hd__trace_write(struct hd__sched *sched)
{
	struct hd__trace *t = &sched->trace;
	char name[PATH_MAX];

	if (!t->from_start || ld_acq(&t->tapes) == NULL)
		return;
	hd__lock(&writing);
	expand(name);
	struct out out = { .fd = hd__os_openat(AT_FDCWD, name, O_WRONLY | O_CREAT | O_TRUNC, 0644) };
	if (out.fd < 0) {
		hd__complain("heddle: HEDDLE_TRACE: %s cannot be written: %s\n", name, strerror(-out.fd));
		hd__unlock(&writing);
		return;
	}
	struct hd__trace_head head = { .magic = HD__TRACE_MAGIC,
				       .version = HD__TRACE_FILE_VERSION,
				       .inside = hd__inside.size,
				       .tapes = (uint32_t)t->ntapes,
				       .workers = hd__workers(sched),
				       .program = getpid(),
				       .clock = t->clock };
	hd__trace_time(sched, &head.clock.last_ticks, &head.clock.last_ns);
	out.at = sizeof head;
	put(&out, &hd__inside, hd__inside.size);
	for (uint64_t i = 0; i < t->ntapes; i++)
		put_tape(&out, &t->tapes[i]);
	head.names = put_names(&out, sched);
	out.at = 0;
	put(&out, &head, sizeof head); /* at last: without it the file is no trace */
	hd__os_close(out.fd);
	if (out.err != 0)
		hd__complain("heddle: HEDDLE_TRACE: %s could not be written: %s\n", name, strerror(out.err));
	hd__unlock(&writing);
}
