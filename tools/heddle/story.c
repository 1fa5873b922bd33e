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

#define NOBODY UINT32_MAX
#define LINES_MAX 400

void print_verdict(const struct hd__sim_page *page)
{
	const struct hd__sim_result *r = &page->result;

	switch ((enum hd__sim_verdict)r->verdict) {
	case HD__SIM_DEADLOCK:
		printf("deadlock: nobody can run, and nothing can wake anybody\n");
		break;
	case HD__SIM_LIVELOCK:
		printf("livelock: not over after %" PRIu32 " steps\n", r->steps - 1);
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
		printf("hang: no end after 10 seconds; does it compute without heddle calls, or wait outside heddle?\n");
		break;
	case HD__SIM_FOREIGN:
		printf("the program has kernel threads of its own: they cannot be simulated\n");
		break;
	case HD__SIM_ASTRAY:
		printf("the plan was made for another program, or for another version of it\n");
		break;
	default:
		printf("no failure\n");
	}
}

/* What a process called, and where. */
struct place {
	const char *call, *where;
};

/* All addresses of the story, looked up once. */
struct atlas {
	uintptr_t *addresses;
	struct symbol *symbols;
	unsigned n;
};

static void make_atlas(struct atlas *a, const struct hd__sim_page *page, pid_t pid)
{
	*a = (struct atlas){ calloc(512, sizeof *a->addresses), calloc(512, sizeof *a->symbols), 0 };
	if (a->addresses == NULL || a->symbols == NULL)
		return;
	for (uint32_t i = 0; i < page->events; i++)
		for (uint32_t j = 0; j < page->event[i].frames; j++) {
			unsigned k = 0;
			while (k < a->n && a->addresses[k] != page->event[i].frame[j])
				k++;
			if (k == a->n && k < 512)
				a->addresses[a->n++] = page->event[i].frame[j];
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

/* The heddle call nearest to the program, and the line of the program that made it. */
static struct place place_of(const struct atlas *a, const struct hd__sim_event *e)
{
	struct place p = { NULL, NULL };

	const char *inside = NULL;

	for (uint32_t j = 0; j < e->frames; j++) {
		const struct symbol *s = symbol_of(a, e->frame[j]);
		if (s != NULL && strcmp(s->function, "hd__sim_point") == 0 && j + 1 < e->frames)
			inside = symbol_of(a, e->frame[j + 1])->place; /* where the runtime itself stood */
		if (s == NULL || strncmp(s->function, "hd_", 3) != 0 || s->function[3] == '_')
			continue;
		p.call = s->function;
		s = j + 1 < e->frames ? symbol_of(a, e->frame[j + 1]) : NULL;
		p.where = s != NULL ? s->place : NULL;
	}
	if (inside != NULL)
		p.where = inside;
	return p;
}

static const char *name_of(uint32_t slot, const char *name, char *buffer, size_t size)
{
	if (name[0] != 0)
		snprintf(buffer, size, "%u %.31s", slot, name);
	else
		snprintf(buffer, size, "%u", slot);
	return buffer;
}

static const char *wait_word(uint8_t why)
{
	static const char *const words[] = {
		[HD_WAIT_SLEEP] = "time",
		[HD_WAIT_SEMAPHORE] = "a semaphore",
		[HD_WAIT_JOIN] = "the end of a process",
		[HD_WAIT_SUSPEND] = "a process to stop",
	};

	return why < sizeof words / sizeof words[0] && words[why] != NULL ? words[why] : "something";
}

/* Whether one of the decisions in [from, to) was not the usual one. */
static bool was_unusual(const struct hd__sim_page *page, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to && i < HD__SIM_LOG_MAX; i++)
		if (page->log[i].option != 0)
			return true;
	return false;
}

/* What the runner did that ended its step. */
static void tell_event(const struct atlas *a, const struct hd__sim_event *e)
{
	char who[64];
	struct place p = place_of(a, e);

	printf("  %10.3f ms  %-8s %-24s %-20s", (double)e->when / 1e6, name_of(e->who, e->name, who, sizeof who),
	       p.call != NULL ? p.call : "", p.where != NULL ? p.where : "");
	if (e->state == HD_WAITING)
		printf(" waits for %s", wait_word(e->why));
	else if (e->state == HD_SUSPENDED)
		printf(" is suspended");
	else if (e->next != e->who)
		printf(" is interrupted");
}

void tell_story(const struct hd__sim_page *page, pid_t pid)
{
	struct atlas atlas;
	uint32_t runs = NOBODY, decisions = 0;
	const char *name = "";
	unsigned lines = 0;
	char who[64];

	make_atlas(&atlas, page, pid);
	for (uint32_t i = 0; i < page->events && lines < LINES_MAX; i++, lines++) {
		const struct hd__sim_event *e = &page->event[i];
		const char *star = was_unusual(page, decisions, e->decision) ? " *" : "";
		decisions = e->decision;
		if (e->who == NOBODY && runs != NOBODY)
			printf("  %10.3f ms  %-8s has ended, or waits", (double)e->when / 1e6,
			       name_of(runs, name, who, sizeof who));
		else if (e->who != NOBODY && e->who != runs &&
			 runs != NOBODY) /* with one worker the rules decide, not a choice */
			printf("  %16s-> %s runs\n", "", name_of(e->who, e->name, who, sizeof who));
		if (e->who != NOBODY)
			tell_event(&atlas, e);
		if (e->next != e->who)
			printf("%s  %16s-> %s runs", e->who != NOBODY || runs != NOBODY ? "\n" : "", "",
			       name_of(e->next, e->next_name, who, sizeof who));
		printf("%s\n", star);
		runs = e->next;
		name = e->next_name;
	}
	if (lines == LINES_MAX || page->events == HD__SIM_EVENTS_MAX)
		printf("  ... (and so on)\n");
	free(atlas.addresses);
	free(atlas.symbols);
}
