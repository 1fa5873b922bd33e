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
	if (d->kind == HD__SIM_YIELDS)
		return option == d->options - 1u; /* or a loop of yields had schedules without end */
	return option != 0 && (d->kind == HD__SIM_STAYS || d->kind == HD__SIM_FAULT);
}

bool next_schedule(const struct subject *s, struct hd__sim_plan *plan, unsigned bound)
{
	const struct hd__sim_page *page = s->page;
	uint32_t n = page->result.decisions, spent = 0;

	if (n > HD__SIM_LOG_MAX)
		die("a run has more than %d decisions: too many to search them all; use random or pct", HD__SIM_LOG_MAX);
	for (uint32_t i = 0; i < n; i++)
		spent += costs(&page->log[i], page->log[i].option);
	while (n-- > 0) {
		const struct hd__sim_decision *d = &page->log[n];
		spent -= costs(d, d->option);
		if (d->option + 1 < d->options && spent + costs(d, d->option + 1u) <= bound)
			break;
	}
	if (n == UINT32_MAX)
		return false;
	plan->policy = HD__SIM_LIST;
	plan->unusual = 0;
	for (uint32_t i = 0; i <= n; i++) {
		unsigned option = page->log[i].option + (i == n);
		if (option == 0)
			continue;
		if (plan->unusual == HD__SIM_LIST_MAX)
			die("a run has more than %d unusual choices: too many to search them all", HD__SIM_LIST_MAX);
		plan->list[plan->unusual++] = (struct hd__sim_unusual){ i, (uint16_t)option };
	}
	return true;
}

bool load_checkpoint(const char *file, uint64_t search, struct hd__sim_plan *plan, uint64_t *done)
{
	uint64_t of;

	static char text[HD__SIM_LIST_MAX * 16];
	FILE *f = fopen(file, "re");

	if (f == NULL) {
		if (errno != ENOENT)
			die("%s: %s", file, strerror(errno));
		return false;
	}
	if (fscanf(f, "heddle-search %" SCNx64 " %" SCNu64 " %65535s", &of, done, text) != 3 || !hd__sim_parse(plan, text))
		die("%s is not a checkpoint; remove it to begin anew", file);
	if (of != search)
		die("%s is the checkpoint of another program or bound; remove it to begin anew", file);
	fclose(f);
	return true;
}

void save_checkpoint(const char *file, uint64_t search, const struct hd__sim_plan *plan, uint64_t done)
{
	static char text[HD__SIM_LIST_MAX * 16];
	char *temporary;

	if (asprintf(&temporary, "%s.new", file) < 0 || !hd__sim_format(plan, text, sizeof text))
		die("no memory for a checkpoint");
	FILE *f = fopen(temporary, "we");
	if (f == NULL || fprintf(f, "heddle-search %" PRIx64 " %" PRIu64 " %s\n", search, done, text) < 0 || fclose(f) != 0 ||
	    rename(temporary, file) != 0)
		die("%s: %s", file, strerror(errno));
	free(temporary);
}
