/* waits.c - `heddle waits`: which processes wait for which, and why nothing moves.
 *
 * What is certain comes first: circles, and owners that have ended. A circle is only told if all its edges were there at once (circle_stands). A wait with a
 * deadline, or for a process to stop, ends by itself and is no part of a circle. */
#define _GNU_SOURCE
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "help.h"
#include "inspect.h"
#include "process/process.h"
#include "say.h"

#define HOG INT64_C(100000000) /* so long a worker may run one process before it is told, ns */
#define LINES_MAX 10	       /* of each kind, if not all are wanted */

static uint32_t limit = LINES_MAX;

/* ---- edges ---- */

/* The row that r waits for, if its wait cannot end otherwise: by its deadline, or because it was terminated. */
static uint32_t successor(const struct census *c, const struct row *r)
{
	const struct row *holder = census_find(c, r->holder);

	if (r->state != HD_WAITING || r->timed || r->changing || r->ending || r->why == HD_WAIT_SUSPEND || holder == NULL ||
	    holder->state == HD_ENDED)
		return NONE;
	return (uint32_t)(holder - c->rows);
}

/* Whether the circle that row `first` is in was there at one moment: each of its edges is there when it is read once more, and after that none of its
 * processes has run since its row was read. What one of them has, only that one can give up: so all edges were there while they were read again. */
static bool circle_stands(const struct census *c, uint32_t first)
{
	uint32_t i = first;

	do
		if (!row_waits_for_same(c, &c->rows[i]))
			return false;
	while ((i = successor(c, &c->rows[i])) != first);
	do
		if (!row_is_same(c, &c->rows[i]))
			return false;
	while ((i = successor(c, &c->rows[i])) != first);
	return true;
}

/* Marks each row that is in a circle with the number of that circle, from 1 on; the others with 0. Each row has one successor at most: so each is
 * passed once. */
static uint32_t find_circles(const struct census *c, uint32_t *circle)
{
	uint32_t *seen = need(calloc((size_t)c->count + 1, sizeof *seen)), circles = 0;

	for (uint32_t start = 0; start < c->count; start++) {
		uint32_t i = start;
		while (i != NONE && seen[i] == 0) {
			seen[i] = start + 1;
			i = successor(c, &c->rows[i]);
		}
		if (i == NONE || seen[i] != start + 1)
			continue;
		if (!circle_stands(c, i))
			continue;
		circles++;
		uint32_t k = i;
		do {
			circle[k] = circles;
			k = successor(c, &c->rows[k]);
		} while (k != i);
	}
	free(seen);
	return circles;
}

static int priority_of(const struct row *r)
{
	return r->lent > r->own ? r->lent : r->own;
}

/* ---- text ---- */

static void print_wait(const struct census *c, const struct row *r)
{
	char waiter[WHO_SIZE], holder[WHO_SIZE], object[WHO_SIZE], since[32];

	object_of(c, r, object);
	printf("  %s waits in %s%s%s%s%s, for %s%s\n", who(c, r->pid, waiter), call_of(c, r), object[0] != 0 ? ", " : "",
	       object, r->holder != 0 ? (r->object != 0 ? ", held by " : ", for ") : "",
	       r->holder != 0 ? who(c, r->holder, holder) : "", span(r->since, c->now, since),
	       r->timed ? ", with a deadline" : "");
}

static void print_circles(const struct census *c, const uint32_t *circle, uint32_t circles)
{
	bool *printed = need(calloc((size_t)circles + 1, sizeof *printed));
	uint32_t told = 0;

	for (uint32_t i = 0; i < c->count && told < limit; i++) {
		uint32_t length = 0, k = i;
		if (circle[i] == 0 || printed[circle[i]])
			continue;
		printed[circle[i]] = true;
		do {
			length++;
			k = successor(c, &c->rows[k]);
		} while (k != i);
		printf("a circle of %" PRIu32 " process%s, each of which waits for the next: a deadlock\n", length,
		       length == 1 ? "" : "es");
		do {
			print_wait(c, &c->rows[k]);
			k = successor(c, &c->rows[k]);
		} while (k != i);
		told++;
	}
	if (circles > told)
		printf("and %" PRIu32 " more circles\n", circles - told);
	free(printed);
}

/* Waits for something whose owner has ended and can give it up no more, or is a plain thread. */
static bool print_owners(const struct census *c)
{
	uint32_t dead = 0, threads = 0;

	for (uint32_t i = 0; i < c->count; i++) {
		const struct row *r = &c->rows[i];
		bool owned = r->why == HD_WAIT_MUTEX || r->why == HD_WAIT_REENTER || r->why == HD_WAIT_READ ||
			     r->why == HD_WAIT_WRITE || r->why == HD_WAIT_ONCE;
		if (!owned || r->holder <= 0 || !census_has_ended(c, r->holder) || !row_waits_for_same(c, r))
			continue;
		if (dead++ == 0)
			printf("an owner has ended and has not given up what others wait for\n");
		if (dead <= limit)
			print_wait(c, r);
	}
	if (dead > limit)
		printf("  and %" PRIu32 " more\n", dead - limit);
	for (uint32_t i = 0; i < c->count; i++) {
		if (c->rows[i].holder >= 0)
			continue;
		if (threads++ == 0)
			printf("plain threads, which heddle does not see into, have what processes wait for\n");
		if (threads <= limit)
			print_wait(c, &c->rows[i]);
	}
	if (threads > limit)
		printf("  and %" PRIu32 " more\n", threads - limit);
	return dead > 0;
}

static void print_workers(const struct census *c)
{
	uint32_t busy = 0, ready = 0;
	int64_t longest = c->now;
	char text[WHO_SIZE], since[32];

	for (uint32_t i = 0; i < c->nworkers; i++) {
		const struct row *r = census_find(c, c->workers[i].running);
		busy += r != NULL && age_of(c, r) >= HOG;
	}
	for (uint32_t i = 0; i < c->count; i++)
		if (c->rows[i].state == HD_READY) {
			ready++;
			if (c->rows[i].since < longest)
				longest = c->rows[i].since;
		}
	if (busy == c->nworkers)
		printf("%s given way for long%s\n",
		       c->nworkers == 1 ? "the only worker runs a process that has not"
					: "all workers are busy: each runs a process that has not",
		       ready > 0 ? "" : "; no other process is ready");
	else if (busy > 0)
		printf("%" PRIu32 " of %" PRIu32 " workers run a process that has not given way for long\n", busy, c->nworkers);
	uint32_t told = 0;
	for (uint32_t i = 0; i < c->nworkers && busy > 0; i++) {
		const struct row *r = census_find(c, c->workers[i].running);
		if (r == NULL || age_of(c, r) < HOG || told++ >= limit)
			continue;
		printf("  worker %" PRIu32 " runs %s of priority %d, for %s; %" PRIu32 " ready behind it\n", i,
		       who(c, r->pid, text), priority_of(r), span(r->since, c->now, since), c->workers[i].ready);
	}
	if (busy > 0 && ready > 0)
		printf("  %" PRIu32 " process%s ready and run%s nowhere, the first of them for %s: a loop without heddle calls "
		       "needs hd_checkpoint()\n",
		       ready, ready == 1 ? " is" : "es are", ready == 1 ? "s" : "", span(longest, c->now, since));
}

/* Nothing is ready: what could still wake a process. */
static void print_idle(const struct census *c)
{
	uint32_t waiting = 0, timed = 0, outside = 0;

	for (uint32_t i = 0; i < c->count; i++) {
		const struct row *r = &c->rows[i];
		if (r->state == HD_READY || r->state == HD_RUNNING || r->changing)
			return;
		waiting += r->state == HD_WAITING;
		timed += r->timed;
		outside += r->state == HD_WAITING && r->why >= HD_WAIT_FD_READ && r->why <= HD_WAIT_CHILD;
	}
	printf("no process runs or is ready; %" PRIu32 " wait, %" PRIu32 " of them with a deadline, %" PRIu32
	       " for the system\n",
	       waiting, timed, outside);
}

/* A process waits for one of a lower priority, which is ready and does not run, while others of a priority between the two do. */
static void print_inversions(const struct census *c)
{
	uint32_t told = 0;
	char waiter[WHO_SIZE], holder[WHO_SIZE], between[WHO_SIZE], object[WHO_SIZE];

	for (uint32_t i = 0; i < c->count && told < limit; i++) {
		const struct row *r = &c->rows[i], *low = census_find(c, r->holder);
		if (r->state != HD_WAITING || low == NULL || low->state != HD_READY || priority_of(low) >= priority_of(r) ||
		    r->why == HD_WAIT_JOIN || r->why == HD_WAIT_TERMINATE)
			continue;
		for (uint32_t k = 0; k < c->nworkers; k++) {
			const struct row *b = census_find(c, c->workers[k].running);
			if (b == NULL || priority_of(b) <= priority_of(low) || priority_of(b) >= priority_of(r))
				continue;
			if (told++ == 0)
				printf("priority inversion\n");
			object_of(c, r, object);
			printf("  %s of priority %d waits%s%s for %s of priority %d, which is ready, and %s of priority %d "
			       "runs\n",
			       who(c, r->pid, waiter), priority_of(r), object[0] != 0 ? " in " : "", object,
			       who(c, low->pid, holder), priority_of(low), who(c, b->pid, between), priority_of(b));
			break;
		}
	}
}

/* ---- the longest waits, those for the same thing together ---- */

static int by_what(const void *a, const void *b)
{
	const struct row *x = *(const struct row *const *)a, *y = *(const struct row *const *)b;

	if (x->why != y->why)
		return x->why < y->why ? -1 : 1;
	if (x->object != y->object)
		return x->object < y->object ? -1 : 1;
	if (x->holder != y->holder)
		return x->holder < y->holder ? -1 : 1;
	if (x->fd != y->fd)
		return x->fd < y->fd ? -1 : 1;
	return x->since < y->since ? -1 : x->since > y->since;
}

struct together {
	const struct row *first; /* that has waited longest */
	uint32_t count;
};

static int by_age(const void *a, const void *b)
{
	const struct together *x = a, *y = b;
	return x->first->since < y->first->since ? -1 : x->first->since > y->first->since;
}

static void print_longest(const struct census *c)
{
	const struct row **rows = need(malloc(((size_t)c->count + 1) * sizeof *rows));
	uint32_t n = 0, groups = 0;

	for (uint32_t i = 0; i < c->count; i++)
		if (c->rows[i].state == HD_WAITING)
			rows[n++] = &c->rows[i];
	qsort(rows, n, sizeof *rows, by_what);
	struct together *all = need(malloc(((size_t)n + 1) * sizeof *all));
	for (uint32_t i = 0; i < n; i++) {
		const struct row *r = rows[i], *last = groups > 0 ? all[groups - 1].first : NULL;
		if (last != NULL && last->why == r->why && last->object == r->object && last->holder == r->holder &&
		    last->fd == r->fd)
			all[groups - 1].count++;
		else
			all[groups++] = (struct together){ r, 1 };
	}
	qsort(all, groups, sizeof *all, by_age);
	printf("%" PRIu32 " process%s%s\n", n, n == 1 ? " waits" : "es wait",
	       n > 0 ? "; the longest waits, those for the same thing together" : "");
	for (uint32_t i = 0; i < groups && i < limit; i++) {
		print_wait(c, all[i].first);
		if (all[i].count > 1)
			printf("    and %" PRIu32 " more wait for the same\n", all[i].count - 1);
	}
	if (groups > limit)
		printf("  and %" PRIu32 " other things are waited for\n", groups - limit);
	free(all);
	free(rows);
}

/* ---- DOT ---- */

static void print_quoted(const char *text)
{
	putchar('"');
	for (; *text != 0; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		putchar(*text);
	}
	putchar('"');
}

static void print_dot(const struct census *c, const uint32_t *circle)
{
	char text[WHO_SIZE];

	printf("digraph waits {\n\trankdir=LR;\n\tnode [shape=box];\n");
	for (uint32_t i = 0; i < c->count; i++) {
		const struct row *r = &c->rows[i];
		if (r->holder == 0)
			continue;
		printf("\t");
		print_quoted(who(c, r->pid, text));
		printf(" -> ");
		print_quoted(who(c, r->holder, text));
		printf(" [label=");
		print_quoted(r->object != 0 || r->fd >= 0 ? object_of(c, r, text) : call_of(c, r));
		printf("%s%s];\n", circle[i] != 0 ? ", color=red" : "", r->timed ? ", style=dashed" : "");
	}
	printf("}\n");
}

bool waits_print(const struct census *c, bool dot)
{
	uint32_t *circle = need(calloc((size_t)c->count + 1, sizeof *circle));
	uint32_t circles = find_circles(c, circle);
	bool stuck = circles > 0;

	if (dot) {
		print_dot(c, circle);
	} else {
		print_headline(c);
		print_circles(c, circle, circles);
		stuck |= print_owners(c);
		print_workers(c);
		print_idle(c);
		print_inversions(c);
		print_longest(c);
	}
	free(circle);
	return stuck;
}

int waits_main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "dot", no_argument, NULL, 'd' },
		{ "all", no_argument, NULL, 'a' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	static struct inspected target;
	bool dot = false, stuck = false;
	int option;

	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (option == 'h') {
			help("waits");
			return 0;
		}
		if (option == '?')
			return 2;
		dot |= option == 'd';
		if (option == 'a')
			limit = UINT32_MAX;
	}
	if (optind + 1 != argc)
		die("which program? `heddle waits PID`, or a core file, or the name of a program; `heddle help waits` "
		    "explains");
	inspect(&target, argv[optind], dot);
	for (size_t i = 0; i < target.running; i++) {
		printf(i > 0 ? "\n" : "");
		stuck |= waits_print(&target.censuses[i], dot);
	}
	inspect_end(&target);
	return stuck;
}
