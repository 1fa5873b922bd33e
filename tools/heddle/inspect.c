/* inspect.c - opens a program to look into it, and says what is wrong when that cannot be. */
#include "inspect.h"

#include <inttypes.h>
#include <stdio.h>

#include "say.h"

#define TRIES 3 /* of a census: a runtime may end and another begin */

bool copy_runs(const struct copy *copy)
{
	return copy->known && copy->inside.sched != 0;
}

static const char *place_of(const struct copy *copy)
{
	return copy->path[0] != 0 ? copy->path : "a file without a name";
}

static void list_copies(const struct inspected *i)
{
	fprintf(stderr, "heddle: %s has %zu copies of heddle:\n", i->memory.name, i->count);
	for (size_t k = 0; k < i->count; k++) {
		const struct copy *copy = &i->copies[k];
		fprintf(stderr, "heddle:   %s: ", place_of(copy));
		if (copy->known)
			fprintf(stderr, "heddle %s, %s\n", copy->inside.library,
				copy_runs(copy) ? "a runtime runs" : "no runtime runs");
		else
			fprintf(stderr, "a description of version %" PRIu32 ", which this command does not know\n",
				copy->version);
	}
}

/* Says why no runtime can be shown. */
static _Noreturn void explain(const struct inspected *i)
{
	const struct copy *unknown = NULL;

	if (i->count == 0)
		die("%s: there is no heddle in it%s", i->memory.name, i->memory.truncated ? ", as far as the file goes" : "");
	for (size_t k = 0; k < i->count; k++)
		if (!i->copies[k].known)
			unknown = &i->copies[k];
	if (unknown == NULL)
		die("%s: no runtime runs in it: it has not called hd_run, or that has returned", i->memory.name);
	if (unknown->version != HD__INSIDE_VERSION)
		die("%s: its heddle has a description of version %" PRIu32
		    ", and this command knows version %d: use the `heddle` that belongs to that library",
		    i->memory.name, unknown->version, HD__INSIDE_VERSION);
	die("%s: heddle's description of itself makes no sense there: the memory was overwritten", i->memory.name);
}

static void take(struct inspected *i, const struct copy *copy)
{
	char why[256] = "";

	for (int k = 0; k < TRIES; k++)
		if (census_take(&i->censuses[i->running], &i->memory, copy, why, sizeof why)) {
			i->running++;
			return;
		}
	die("%s: %s", i->memory.name, why);
}

void inspect(struct inspected *i, const char *word, bool quiet)
{
	target_open(&i->memory, word);
	if (i->memory.truncated && !quiet)
		fprintf(stderr, "heddle: warning: %s: what is missing is not shown\n", i->memory.name);
	i->count = copies_find(&i->memory, i->copies, COPIES_MAX);
	if (i->count > 1 && !quiet)
		list_copies(i);
	for (size_t k = 0; k < i->count; k++)
		if (copy_runs(&i->copies[k]))
			take(i, &i->copies[k]);
	if (i->running == 0)
		explain(i);
}

void inspect_end(struct inspected *i)
{
	for (size_t k = 0; k < i->running; k++)
		census_drop(&i->censuses[k]);
	memory_close(&i->memory);
	if (fflush(stdout) != 0)
		die("cannot write to stdout");
}

void print_headline(const struct census *c)
{
	printf("%s: heddle %s, %" PRIu32 " process%s, %" PRIu32 " worker%s%s\n", c->m->name, c->copy->inside.library, c->count,
	       c->count == 1 ? "" : "es", c->nworkers, c->nworkers == 1 ? "" : "s",
	       c->stopping ? "; the runtime is ending" : "");
	if (c->missing > 0)
		printf("%" PRIu32 " of %" PRIu32 " control blocks could not be read\n", c->missing, c->made);
	if (!c->now_is_exact)
		printf("times are as of the program's last look at the clock: at least so long\n");
}
