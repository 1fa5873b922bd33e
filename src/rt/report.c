/* rt/report.c - what each process does, since when, the owner of what it waits for, and where in the program it is: printed when no process
 * can run any more, and at SIGQUIT.
 *
 * Owns:      the SIGQUIT action while the runtime runs, unless the program has one of its own. The handler leaves the report to the watcher,
 *            which may allocate and read files, and runs when all workers are stuck; then the signal does what it did before, or (HEDDLE_QUIT=dump)
 *            nothing. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "os/memory.h"
#include "os/source.h"
#include "port/port.h"
#include "rt/rt.h"
#include "sched/gate.h"
#include "sim/threads.h"

#define LINES_MAX 50
#define PLACES_MAX 4	/* of a process */
#define LONG HD_MS(100) /* for a process to have a worker */

/* ---- places ---- */

/* Whether a place is in heddle: in its shared library, or in a function of its namespace, or, in a program that has it inside, in a file
 * beside or below the directory that `self`, a place in this file, is in; or in a sanitizer's wrapper of what heddle calls. */
static bool is_own(const struct hd__source *p, const struct hd__source *self)
{
	const char *slash = strrchr(self->directory, '/');

	return strncmp(p->module, "libheddle.", 10) == 0 || strncmp(p->function, "hd_", 3) == 0 ||
	       strncmp(p->function, "__interceptor_", 14) == 0 ||
	       (slash != NULL && strncmp(p->directory, self->directory, (size_t)(slash + 1 - self->directory)) == 0);
}

static void print_place(const struct hd__source *p)
{
	if (p->line != 0)
		hd__complain("heddle:     in %s, %s:%u\n", p->function[0] != 0 ? p->function : "?", p->file, p->line);
	else if (p->function[0] != 0)
		hd__complain("heddle:     in %s, %s+0x%zx\n", p->function, p->path, (size_t)p->offset);
	else if (p->module[0] != 0)
		hd__complain("heddle:     at %s+0x%zx\n", p->path, (size_t)p->offset);
	else
		hd__complain("heddle:     at 0x%zx\n", (size_t)p->address);
}

static bool has_name(const struct hd__source *p)
{
	return p->line != 0 || p->function[0] != 0;
}

/* If some have names, only these: the others are in the C library, as a rule, and say little. */
static void print_places(const struct hd__source *places, int n, const struct hd__source *self)
{
	int printed = 0;
	bool named = false;

	for (int i = 0; i < n; i++)
		named |= has_name(&places[i]) && !is_own(&places[i], self);
	for (int i = 0; i < n && printed < PLACES_MAX; i++)
		if (!is_own(&places[i], self) && (has_name(&places[i]) || !named)) {
			print_place(&places[i]);
			printed++;
		}
}

#define HERE ((uintptr_t)hd__report + 1)

void hd__print_frames(void *const frames[], int n)
{
	struct hd__source *places = hd__os_alloc((size_t)(n + 1) * sizeof *places);

	if (places == NULL)
		return;
	for (int i = 0; i < n; i++)
		places[i].address = (uintptr_t)frames[i];
	places[n].address = HERE;
	hd__os_find_sources(places, n + 1);
	print_places(places, n, &places[n]);
	hd__os_free(places);
}

/* ---- processes ---- */

static void print_process(struct hd__sched *sched, const struct hd_process_info *info, hd_time now)
{
	char who[HD__WHO_SIZE], holder[HD__WHO_SIZE], doing[256] = "is suspended";

	if (info->state == HD_SUSPENDED && info->switches == 0)
		snprintf(doing, sizeof doing, "is suspended and has not begun");
	else if (info->state == HD_WAITING)
		snprintf(doing, sizeof doing, "waits in %s%s%s%s", hd__wait_name(info->why), info->holder != 0 ? " for " : "",
			 info->holder != 0 ? hd__who(sched, info->holder, holder) : "", info->suspended ? ", suspended" : "");
	else if (info->state == HD_READY)
		snprintf(doing, sizeof doing, "is ready");
	else if (info->state == HD_RUNNING)
		snprintf(doing, sizeof doing, "runs on worker %d", info->worker);
	hd__complain("heddle:   %s of priority %d%s %s, for %.3f s\n", hd__who(sched, info->pid, who), info->priority,
		     info->daemon ? ", a daemon," : "", doing, (double)(now - info->since) / 1e9);
}

/* What is known of the processes of a report, before it is printed: all places are looked up together. */
struct report {
	unsigned lines;
	int frames[LINES_MAX];
	struct hd_process_info info[LINES_MAX];
	struct hd__source places[1 + LINES_MAX * HD__FRAMES_MAX]; /* the first is in this file: see is_own */
};

static struct hd__source *places_of(struct report *r, unsigned line)
{
	return &r->places[1 + line * HD__FRAMES_MAX];
}

static void gather(struct hd__sched *sched, struct report *r, struct hd_process *p)
{
	void *frames[HD__FRAMES_MAX];
	unsigned line = r->lines++;

	hd__describe(sched, p, &r->info[line]);
	r->frames[line] = hd__walk(p, frames);
	uintptr_t entry = ld_acq(&p->stack) == NULL ? hd__entry_of(p) : 0;
	if (r->frames[line] == 0 && entry != 0) { /* the function in which it will begin, or have its next turn */
		frames[0] = (char *)entry + 1;
		r->frames[line] = 1;
	}
	for (int i = 0; i < r->frames[line]; i++)
		places_of(r, line)[i].address = (uintptr_t)frames[i];
}

struct suspicion {
	struct hd__sched *sched;
	unsigned lines;
};

static int print_suspect(const struct hd_suspect *s, void *arg)
{
	struct suspicion *suspicion = arg;
	char who[HD__WHO_SIZE], carried[80] = "";

	if (s->references > 0)
		snprintf(carried, sizeof carried, ", but in messages of processes that are stuck, too");
	hd__complain("heddle:   %s is suspected to be stuck: no process has a reference to %s%s\n",
		     hd__who(suspicion->sched, s->pid, who),
		     s->ports == 1 ? "the port for which it waits" : "a port for which it waits", carried);
	return ++suspicion->lines == LINES_MAX;
}

void hd__report(struct hd__sched *sched, const char *headline)
{
	struct suspicion suspicion = { .sched = sched };
	struct report *r = hd__os_reserve(sizeof *r, 0);
	hd_time now = hd__clock(sched);
	unsigned more = 0;

	hd__complain("heddle: %s\n", headline);
	if (r == NULL)
		return;
	for (uint32_t slot = 0; slot < ld_acq(&sched->table.made); slot++) {
		struct hd_process *p = &sched->table.blocks[slot];
		if (ld_acq(&p->control) & HD__DEAD)
			continue;
		if (r->lines < LINES_MAX)
			gather(sched, r, p);
		else
			more++;
	}
	r->places[0].address = HERE;
	hd__os_find_sources(r->places, 1 + (int)(r->lines * HD__FRAMES_MAX));
	for (unsigned i = 0; i < r->lines; i++) {
		print_process(sched, &r->info[i], now);
		print_places(places_of(r, i), r->frames[i], &r->places[0]);
	}
	if (more > 0)
		hd__complain("heddle:   and %u more\n", more);
	hd__os_unreserve(r, sizeof *r);
	(void)hd__each_suspect(sched, false, print_suspect, &suspicion); /* at last: without memory all else has been printed */
	hd__trace_write(sched);
}

/* ---- SIGQUIT ---- */

/* The default action again; false if the action is not ours. */
static bool give_back_quit(void);

static void on_quit(int signal)
{
	struct hd__sched *sched = hd__gate_enter();

	if (sched != NULL) {
		st_rel(&sched->watcher.quit, true);
		hd__watcher_kick(&sched->watcher);
		hd__gate_leave();
	} else if (give_back_quit()) {
		raise(signal);
	}
}

static bool give_back_quit(void)
{
	struct sigaction action;

	if (sigaction(SIGQUIT, NULL, &action) != 0 || action.sa_handler != on_quit)
		return false;
	action = (struct sigaction){ .sa_handler = SIG_DFL };
	sigaction(SIGQUIT, &action, NULL);
	return true;
}

/* The workers whose process has not given way for long: the report may have had no line left for it. */
static void print_busy(struct hd__sched *sched)
{
	hd_time now = hd__clock(sched);
	char who[HD__WHO_SIZE];

	for (unsigned i = 0; i < hd__workers(sched); i++) {
		struct hd_process *p; /* the worker stores it plainly; a block stays a block */
		if (!hd__os_peek(&p, &sched->workers[i].current, sizeof p) || p == NULL)
			continue;
		hd_time since = ld_acq(&p->since);
		if (ld_acq(&p->state) != HD_RUNNING || now - since < LONG)
			continue;
		hd__complain("heddle: worker %u runs %s, which has not given way for %.3f s\n", i,
			     hd__who(sched, hd__pid(&sched->table, p), who), (double)(now - since) / 1e9);
	}
}

void hd__quit(struct hd__sched *sched)
{
	hd__report(sched, "SIGQUIT: this is what the processes do");
	hd__print_circles(sched);
	print_busy(sched);
	if (sched->quit == HD__QUIT_CORE && give_back_quit())
		kill(getpid(), SIGQUIT);
}

void hd__quit_watch_start(struct hd__sched *sched)
{
	struct sigaction action;

	if (sched->quit == HD__QUIT_OFF || !sched->watched || hd__sim_threads || sigaction(SIGQUIT, NULL, &action) != 0 ||
	    action.sa_handler != SIG_DFL)
		return;
	action = (struct sigaction){ .sa_handler = on_quit, .sa_flags = SA_ONSTACK | SA_RESTART };
	sigemptyset(&action.sa_mask);
	sigaction(SIGQUIT, &action, NULL);
}

void hd__quit_watch_stop(struct hd__sched *sched)
{
	if (give_back_quit() && sched != NULL && sched->quit == HD__QUIT_CORE && ld_acq(&sched->watcher.quit))
		raise(SIGQUIT); /* it came when the watcher had gone */
}
