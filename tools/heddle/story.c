/* story.c - a run, told line by line. */
#define _GNU_SOURCE
#include "story.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "symbols.h"

#define ADDRESSES_MAX 512
#define EVENTS_MAX 400 /* that are told: the last ones */
_Static_assert(EVENTS_MAX <= HD__SIM_EVENTS_MAX, "what is told must have been kept");

void print_verdict(const struct hd__sim_page *page)
{
	const struct hd__sim_result *r = &page->result;

	switch ((enum hd__sim_verdict)r->verdict) {
	case HD__SIM_DEADLOCK:
		printf("deadlock: no process can run, and nothing can wake one\n");
		break;
	case HD__SIM_LIVELOCK:
		printf("livelock: it goes in a circle of %" PRIu32 " step%s, and never ends\n", r->circle,
		       r->circle == 1 ? "" : "s");
		break;
	case HD__SIM_NOT_OVER:
		printf("not over after %" PRIu32 " steps, which is no failure (with :steps=N it runs for longer)\n", r->steps);
		break;
	case HD__SIM_LEAK:
		if (r->stacks > 0) {
			printf("leak: %" PRIu32 " stack%s of processes that have ended\n", r->stacks,
			       r->stacks == 1 ? "" : "s");
			break;
		}
		printf("leak: %" PRIu32 " process%s ended, and nobody joined or detached %s\n", r->left,
		       r->left == 1 ? "" : "es", r->left == 1 ? "it" : "them");
		break;
	case HD__SIM_STATUS:
		printf("exit status %d\n", WEXITSTATUS(r->status));
		break;
	case HD__SIM_CRASH:
		printf("ended by signal %d (%s)\n", WTERMSIG(r->status), strsignal(WTERMSIG(r->status)));
		break;
	case HD__SIM_HANG:
		printf("hang: no heddle call for %" PRIu32 " second%s; does it compute, or wait outside heddle?\n",
		       (page->patience + 500) / 1000, page->patience < 1500 ? "" : "s");
		break;
	case HD__SIM_FOREIGN:
		printf(HD__SIM_FOREIGN_TEXT "\n");
		break;
	case HD__SIM_ASTRAY:
		printf("the plan was made for another program, or for another version of it\n");
		break;
	default:
		printf("no failure\n");
	}
}

/* What a process called, and where: the line that made the call, the line that called the function it is in, and so on. */
struct place {
	const char *call, *where[PLACES_MAX];
	unsigned places;
};

static const struct hd__sim_event *event_of(const struct hd__sim_page *page, uint32_t i)
{
	return &page->event[i % HD__SIM_EVENTS_MAX];
}

static uint32_t first_told(const struct hd__sim_page *page)
{
	return page->events > EVENTS_MAX ? page->events - EVENTS_MAX : 0;
}

/* All addresses of the story, looked up once. */
struct atlas {
	uintptr_t *addresses;
	struct symbol *symbols;
	unsigned n;
	int width; /* of the longest name of a process */
};

static void add_address(struct atlas *a, uintptr_t address)
{
	unsigned i = 0;

	while (i < a->n && a->addresses[i] != address)
		i++;
	if (i == a->n && i < ADDRESSES_MAX && address != 1)
		a->addresses[a->n++] = address;
}

static void make_atlas(struct atlas *a, const struct hd__sim_page *page, pid_t pid)
{
	*a = (struct atlas){ calloc(ADDRESSES_MAX, sizeof *a->addresses), calloc(ADDRESSES_MAX, sizeof *a->symbols), 0, 8 };
	if (a->addresses == NULL || a->symbols == NULL)
		return;
	for (uint32_t i = first_told(page); i < page->events; i++) {
		const struct hd__sim_event *e = event_of(page, i);
		add_address(a, e->entry + 1); /* what is looked up stands behind its instruction */
		add_address(a, e->next_entry + 1);
		for (uint32_t j = 0; j < e->frames; j++)
			add_address(a, e->frame[j]);
	}
	if (pid > 0)
		look_up(pid, a->addresses, a->n, a->symbols);
}

static const struct symbol *symbol_of(const struct atlas *a, uintptr_t address)
{
	for (unsigned k = 0; k < a->n; k++)
		if (a->addresses[k] == address)
			return &a->symbols[k];
	return NULL;
}

static bool is_heddles(const struct symbol *s)
{
	return s->in_heddle || strncmp(s->function, "hd_", 3) == 0;
}

static bool is_call(const struct symbol *s)
{
	return strncmp(s->function, "hd_", 3) == 0 && s->function[3] != '_';
}

static void add_place(struct place *p, const char *where)
{
	if (p->places < PLACES_MAX && (p->places == 0 || strchr(where, ':') != NULL))
		p->where[p->places++] = where;
}

/* The heddle call of the innermost code of the program, and the lines of the program that led to it. */
static struct place place_of(const struct atlas *a, const struct hd__sim_event *e)
{
	struct place p = { .call = NULL };
	uint32_t j = 0;

	for (; j < e->frames; j++) {
		const struct symbol *s = symbol_of(a, e->frame[j]);
		if (s == NULL)
			continue;
		if (strcmp(s->function, "hd__sim_point") == 0 && j + 1 < e->frames)
			add_place(&p, symbol_of(a, e->frame[j + 1])->place[0]); /* where the runtime itself stood */
		if (is_call(s))
			p.call = s->function;
		else if (p.call != NULL && !is_heddles(s))
			break;
	}
	for (; p.call != NULL && j < e->frames; j++) {
		const struct symbol *s = symbol_of(a, e->frame[j]);
		if (s == NULL || is_heddles(s))
			break;
		for (unsigned i = 0; i < s->places; i++)
			add_place(&p, s->place[i]);
	}
	return p;
}

/* The place of event i. The function of a call that waits may have left its frame to one that it ended with: then it is the call that the
 * process had begun when it was last seen. */
static struct place place_at(const struct atlas *a, const struct hd__sim_page *page, uint32_t i)
{
	struct place p = place_of(a, event_of(page, i));

	for (uint32_t j = i; p.call == NULL && j-- > first_told(page);)
		if (event_of(page, j)->who == event_of(page, i)->who)
			p = place_of(a, event_of(page, j));
	return p;
}

/* A process as a story calls it, and as heddle's reports do: its name or, if it has none, the function it began with; the number of its
 * slot; and, if it is not the first one there, the how many-th. */
struct who {
	char text[96];
};

static struct who name_of(const struct atlas *a, hd_pid pid, const char *name, uintptr_t entry)
{
	const struct symbol *s = symbol_of(a, entry + 1);
	bool known = s != NULL && s->function[0] != 0 && !is_heddles(s);
	const char *called = name[0] != 0 ? name : known ? s->function : "process";
	unsigned slot = (unsigned)pid & 0xffffff;
	uint64_t generation = (uint64_t)pid >> 24;
	struct who who;

	int n = snprintf(who.text, sizeof who.text, "%.31s%s #%u", called, known && name[0] == 0 ? "()" : "", slot);
	if (generation > 1)
		snprintf(who.text + n, sizeof who.text - (size_t)n, ".%" PRIu64, generation);
	return who;
}

static struct who stopped(const struct atlas *a, const struct hd__sim_event *e)
{
	return name_of(a, e->who, e->name, e->entry);
}

static struct who goes_on(const struct atlas *a, const struct hd__sim_event *e)
{
	return name_of(a, e->next, e->next_name, e->next_entry);
}

/* A process that has been told of before event i, or else only its number. */
static struct who told(const struct atlas *a, const struct hd__sim_page *page, uint32_t i, hd_pid pid)
{
	do {
		if (event_of(page, i)->who == pid)
			return stopped(a, event_of(page, i));
		if (event_of(page, i)->next == pid)
			return goes_on(a, event_of(page, i));
	} while (i-- > first_told(page));
	return name_of(a, pid, "", 0);
}

static void tell_wait(const struct atlas *a, const struct hd__sim_page *page, uint32_t i)
{
	static const char *const words[] = {
		[HD_WAIT_SLEEP] = "time",
		[HD_WAIT_SEMAPHORE] = "a semaphore",
		[HD_WAIT_JOIN] = "the end of a process",
		[HD_WAIT_SUSPEND] = "a process to stop",
		[HD_WAIT_TERMINATE] = "the end of a process that it terminates",
		[HD_WAIT_MUTEX] = "a mutex",
		[HD_WAIT_CONDITION] = "a condition",
		[HD_WAIT_REENTER] = "the mutex of its condition",
		[HD_WAIT_READ] = "an rwlock, to read",
		[HD_WAIT_WRITE] = "an rwlock, to write",
		[HD_WAIT_BARRIER] = "a barrier",
		[HD_WAIT_ONCE] = "a once that another process does",
		[HD_WAIT_EVENT] = "an event",
		[HD_WAIT_WAITGROUP] = "a wait group",
		[HD_WAIT_PROMISE] = "a promise",
		[HD_WAIT_PUT] = "room in a queue",
		[HD_WAIT_NEXT] = "an item of a queue",
		[HD_WAIT_SELECT] = "the first of several things",
		[HD_WAIT_GROUP] = "the members of its group",
		[HD_WAIT_REST] = "the members of its group, which it has cancelled",
		[HD_WAIT_FD_READ] = "a descriptor, to read",
		[HD_WAIT_FD_WRITE] = "a descriptor, to write",
		[HD_WAIT_FD_READ_TURN] = "its turn to read a descriptor",
		[HD_WAIT_FD_WRITE_TURN] = "its turn to write to a descriptor",
		[HD_WAIT_FD_POLL] = "one of several descriptors",
		[HD_WAIT_FD_CLOSE] = "the end of a call on a descriptor that it closes",
		[HD_WAIT_FILE] = "a disk",
		[HD_WAIT_FILE_SYNC] = "what it wrote to be on the disk",
		[HD_WAIT_FILE_LOCK] = "a lock of a file",
		[HD_WAIT_FILE_OPEN] = "a file to be open",
		[HD_WAIT_BLOCKING] = "a function on another kernel thread",
		[HD_WAIT_NAME] = "the look-up of a name",
		[HD_WAIT_SIGNAL] = "a signal of the operating system",
		[HD_WAIT_CHILD] = "a child program",
		[HD_WAIT_RECEIVE] = "a message",
		[HD_WAIT_SEND] = "room in a port",
		[HD_WAIT_CALL] = "an answer",
		[HD_WAIT_COWN] = "its cowns",
		[HD_WAIT_QUIESCE] = "the end of all behaviours",
	};
	const struct hd__sim_event *e = event_of(page, i);
	const char *what = e->why < sizeof words / sizeof words[0] && words[e->why] != NULL ? words[e->why] : "something";

	if (e->holder == HD__SIM_NONE)
		printf(" waits for %s", what);
	else if (e->why == HD_WAIT_JOIN)
		printf(" waits for the end of %s", told(a, page, i, e->holder).text);
	else
		printf(" waits for %s, which %s has", what, told(a, page, i, e->holder).text);
}

/* Whether one of the decisions in [from, to) was not the usual one. */
static bool was_unusual(const struct hd__sim_page *page, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to && i < HD__SIM_LOG_MAX; i++)
		if (page->log[i].option != 0)
			return true;
	return false;
}

static void tell_time(const struct hd__sim_event *e)
{
	printf("  %10.3f ms  ", (double)e->when / 1e6);
}

/* What the runner did that ended its step. */
static void tell_event(const struct atlas *a, const struct hd__sim_page *page, uint32_t i)
{
	const struct hd__sim_event *e = event_of(page, i);
	struct place p = place_at(a, page, i);
	char where[PLACES_MAX * 100] = "";
	bool stops = e->state == HD_WAITING || e->state == HD_SUSPENDED || e->next != e->who;

	for (unsigned j = 0; j < p.places; j++)
		snprintf(where + strlen(where), sizeof where - strlen(where), "%s%s", j > 0 ? " < " : "", p.where[j]);
	tell_time(e);
	printf("%-*s %-20s %-*s", a->width, stopped(a, e).text, p.call != NULL ? p.call : "", stops ? 24 : 0, where);
	if (e->state == HD_WAITING)
		tell_wait(a, page, i);
	else if (e->state == HD_SUSPENDED)
		printf(" is suspended");
	else if (stops)
		printf(p.call != NULL && strcmp(p.call, "hd_yield") == 0 ? " gives way" : " is interrupted");
}

void tell_story(const struct hd__sim_page *page, pid_t pid)
{
	struct atlas atlas;
	uint32_t first = first_told(page);
	const struct hd__sim_event *before = NULL;

	make_atlas(&atlas, page, pid);
	for (uint32_t i = first; i < page->events; i++) {
		int width = (int)strlen(goes_on(&atlas, event_of(page, i)).text);
		if (event_of(page, i)->next != HD__SIM_NONE && width > atlas.width)
			atlas.width = width;
	}
	if (first > 0)
		printf("  ... (%" PRIu32 " steps before these are not told)\n", first);
	for (uint32_t i = first; i < page->events; i++) {
		const struct hd__sim_event *e = event_of(page, i);
		bool unusual =
			(i == 0 || before != NULL) && was_unusual(page, before != NULL ? before->decision : 0, e->decision);
		bool ran = before != NULL && before->next != HD__SIM_NONE, line = e->who != HD__SIM_NONE || ran;
		if (ran && e->who != HD__SIM_NONE &&
		    e->who != before->next) /* with one worker the rules decide, not a choice */
			printf("  %16s-> %s runs\n", "", stopped(&atlas, e).text);
		if (e->who != HD__SIM_NONE) {
			tell_event(&atlas, page, i);
		} else if (ran) {
			tell_time(e);
			printf("%-*s has ended", atlas.width, goes_on(&atlas, before).text);
		}
		if (e->next == HD__SIM_NONE && i + 1 == page->events)
			printf("%s  %16sno process can run%s", line ? "\n" : "", "",
			       page->result.verdict == HD__SIM_DEADLOCK ? ", and none will be woken: a deadlock" : "");
		else if (e->next != e->who && e->next != HD__SIM_NONE)
			printf("%s  %16s-> %s runs", line ? "\n" : "", "", goes_on(&atlas, e).text);
		printf("%s\n", unusual ? " *" : "");
		before = e;
	}
	if (page->result.verdict == HD__SIM_LIVELOCK)
		printf("  ... and so on, for ever\n");
	free(atlas.addresses);
	free(atlas.symbols);
}
