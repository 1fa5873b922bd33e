/* search.c - bounded exhaustive search. */
#define _GNU_SOURCE
#include "search.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"

/* Whether that option is a preemption, or counts as one. */
static bool costs(const struct hd__sim_decision *d, unsigned option)
{
	return option >= d->free;
}

static uint32_t decisions_of(const struct hd__sim_page *page)
{
	return page->result.decisions < HD__SIM_LOG_MAX ? page->result.decisions : HD__SIM_LOG_MAX;
}

unsigned preemptions_of(const struct subject *s)
{
	unsigned spent = 0;

	for (uint32_t i = 0; i < decisions_of(s->page); i++)
		spent += costs(&s->page->log[i], s->page->log[i].option);
	return spent;
}

/* The options of the run up to decision n, and there the next one. False: too many of them are not the usual ones. */
static bool make_list(const struct hd__sim_page *page, uint32_t n, struct hd__sim_plan *plan)
{
	plan->policy = HD__SIM_LIST;
	plan->unusual = 0;
	for (uint32_t i = 0; i <= n; i++) {
		unsigned option = page->log[i].option + (i == n);
		if (option == 0)
			continue;
		if (plan->unusual == HD__SIM_LIST_MAX)
			return false;
		plan->list[plan->unusual++] = (struct hd__sim_unusual){ i, (uint16_t)option };
	}
	return true;
}

bool next_schedule(const struct subject *s, struct hd__sim_plan *plan, unsigned bound, struct left_out *out)
{
	const struct hd__sim_page *page = s->page;
	uint32_t n = decisions_of(page);
	unsigned spent = preemptions_of(s);

	out->too_long |= page->result.decisions > HD__SIM_LOG_MAX;
	while (n-- > 0) {
		const struct hd__sim_decision *d = &page->log[n];
		spent -= costs(d, d->option);
		if (d->option + 1 >= d->options)
			continue;
		if (spent + costs(d, d->option + 1u) > bound)
			out->beyond = true;
		else if (make_list(page, n, plan))
			return true;
		else
			out->too_long = true;
	}
	return false;
}

bool load_checkpoint(const char *file, struct checkpoint *c, struct hd__sim_plan *plan)
{
	static char text[HD__SIM_TEXT_MAX];
	FILE *f = fopen(file, "re");
	uint64_t search;
	unsigned out;

	if (f == NULL) {
		if (errno != ENOENT)
			die("%s: %s", file, strerror(errno));
		return false;
	}
	if (fscanf(f, "heddle-search %" SCNx64 " %" SCNu64 " %u %u ", &search, &c->done, &c->bound, &out) != 4 ||
	    fgets(text, sizeof text, f) == NULL)
		die("%s is not a checkpoint; remove it to begin anew", file);
	text[strcspn(text, "\n")] = 0;
	if (!hd__sim_parse(plan, text))
		die("%s is not a checkpoint; remove it to begin anew", file);
	if (search != c->search)
		die("%s is the checkpoint of another program or bound; remove it to begin anew", file);
	c->out = (struct left_out){ .beyond = out & 1, .too_long = out & 2 };
	fclose(f);
	return true;
}

void save_checkpoint(const char *file, const struct checkpoint *c, const struct hd__sim_plan *plan)
{
	static char text[HD__SIM_TEXT_MAX];
	unsigned out = c->out.beyond | (unsigned)c->out.too_long << 1;
	char *temporary;

	if (asprintf(&temporary, "%s.new", file) < 0 || !hd__sim_format(plan, text, sizeof text))
		die("no memory for a checkpoint");
	FILE *f = fopen(temporary, "we");
	if (f == NULL ||
	    fprintf(f, "heddle-search %" PRIx64 " %" PRIu64 " %u %u %s\n", c->search, c->done, c->bound, out, text) < 0 ||
	    fclose(f) != 0 || rename(temporary, file) != 0)
		die("%s: %s", file, strerror(errno));
	free(temporary);
}
