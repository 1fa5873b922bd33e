/* sim/plan.c - plans as text. */
#include "sim/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	unsigned bit;
} faults[] = {
	{ "malloc", HD__SIM_FAIL_MALLOC }, { "alloc", HD__SIM_FAIL_ALLOC }, { "map", HD__SIM_FAIL_MAP },
	{ "guard", HD__SIM_FAIL_GUARD },   { "time", HD__SIM_FAIL_TIME },   { "eintr", HD__SIM_FAIL_EINTR },
	{ "thread", HD__SIM_FAIL_THREAD },
};
#define FAULTS (sizeof faults / sizeof faults[0])

/* Takes a number of at most `most` off *text. */
static bool number(const char **text, uint64_t most, uint64_t *value)
{
	char *end;

	if (**text < '0' || **text > '9')
		return false;
	errno = 0;
	*value = strtoull(*text, &end, 10);
	*text = end;
	return errno == 0 && *value <= most;
}

/* Takes a word off *text, if it is there. */
static bool word(const char **text, const char *expected)
{
	size_t length = strlen(expected);

	if (strncmp(*text, expected, length) != 0)
		return false;
	*text += length;
	return true;
}

unsigned hd__sim_faults(const char *names, size_t length)
{
	unsigned set = 0;

	while (length > 0) {
		size_t name = strcspn(names, "+,"), i = 0;
		if (name > length)
			name = length;
		while (i < FAULTS && (strlen(faults[i].name) != name || strncmp(faults[i].name, names, name) != 0))
			i++;
		if (i == FAULTS)
			return 0;
		set |= faults[i].bit;
		names += name;
		length -= name;
		if (length > 0) { /* the separator, and then there must be more */
			names++;
			length--;
			if (length == 0)
				return 0;
		}
	}
	return set;
}

static bool parse_list(struct hd__sim_plan *plan, const char **text)
{
	uint64_t at, option;

	if (**text < '0' || **text > '9')
		return true; /* nothing but the usual */
	do {
		if (plan->unusual == HD__SIM_LIST_MAX || !number(text, UINT32_MAX, &at) || !word(text, "=") ||
		    !number(text, UINT8_MAX, &option))
			return false;
		if (plan->unusual > 0 && at <= plan->list[plan->unusual - 1].at)
			return false;
		plan->list[plan->unusual++] = (struct hd__sim_unusual){ (uint32_t)at, (uint16_t)option };
	} while (word(text, ","));
	return true;
}

static bool parse_policy(struct hd__sim_plan *plan, const char **text)
{
	uint64_t n = 0;

	if (number(text, UINT64_MAX, &plan->seed)) {
		plan->policy = HD__SIM_RANDOM;
		return true;
	}
	if (word(text, "random:")) {
		plan->policy = HD__SIM_RANDOM;
		return number(text, UINT64_MAX, &plan->seed);
	}
	if (word(text, "pct:")) {
		plan->policy = HD__SIM_PCT;
		if (!number(text, UINT8_MAX, &n) || n == 0 || !word(text, ":"))
			return false;
		plan->depth = (uint8_t)n;
		if (!number(text, UINT32_MAX, &n) || !word(text, ":"))
			return false;
		plan->length = (uint32_t)n;
		return number(text, UINT64_MAX, &plan->seed);
	}
	if (word(text, "robin")) {
		plan->policy = HD__SIM_ROBIN;
		return true;
	}
	plan->policy = HD__SIM_LIST;
	return word(text, "list:") && parse_list(plan, text);
}

static bool parse_option(struct hd__sim_plan *plan, const char **text)
{
	uint64_t n = 0;

	if (word(text, "workers=")) {
		bool good = number(text, HD__SIM_WORKERS_MAX, &n) && n > 0;
		plan->workers = (uint8_t)n;
		return good;
	}
	if (word(text, "steps=")) {
		bool good = number(text, UINT32_MAX, &n) && n > 0;
		plan->steps = (uint32_t)n;
		return good;
	}
	if (word(text, "at=") || word(text, "from=")) {
		plan->fail_on = (*text)[-2] == 'm';
		bool good = number(text, UINT32_MAX, &n) && n > 0;
		plan->fail_at = (uint32_t)n;
		return good;
	}
	if (word(text, "leaks=0"))
		return plan->ignore_leaks = true;
	if (word(text, "fail=")) {
		size_t length = strcspn(*text, ":");
		plan->faults = (uint8_t)hd__sim_faults(*text, length);
		*text += length;
		return plan->faults != 0;
	}
	return false;
}

bool hd__sim_parse(struct hd__sim_plan *plan, const char *text)
{
	memset(plan, 0, offsetof(struct hd__sim_plan, list));
	if (!parse_policy(plan, &text))
		return false;
	while (word(&text, ":"))
		if (!parse_option(plan, &text))
			return false;
	return *text == 0 && (plan->fail_at == 0 || plan->faults != 0);
}

struct writer {
	char *text;
	size_t size, length;
};

__attribute__((format(printf, 2, 3))) static void put(struct writer *w, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	int n = vsnprintf(w->length < w->size ? w->text + w->length : NULL, w->length < w->size ? w->size - w->length : 0,
			  format, args);
	va_end(args);
	w->length += (size_t)n;
}

static void put_faults(struct writer *w, const struct hd__sim_plan *plan)
{
	const char *before = ":fail=";

	for (size_t i = 0; i < FAULTS; i++)
		if (plan->faults & faults[i].bit) {
			put(w, "%s%s", before, faults[i].name);
			before = "+";
		}
	if (plan->faults != 0 && plan->fail_at != 0)
		put(w, ":%s=%" PRIu32, plan->fail_on ? "from" : "at", plan->fail_at);
}

bool hd__sim_format(const struct hd__sim_plan *plan, char *text, size_t size)
{
	struct writer w = { text, size, 0 };

	switch (plan->policy) {
	case HD__SIM_RANDOM:
		put(&w, "random:%" PRIu64, plan->seed);
		break;
	case HD__SIM_PCT:
		put(&w, "pct:%u:%" PRIu32 ":%" PRIu64, plan->depth, plan->length, plan->seed);
		break;
	case HD__SIM_ROBIN:
		put(&w, "robin");
		break;
	default:
		put(&w, "list:");
		for (uint32_t i = 0; i < plan->unusual; i++)
			put(&w, "%s%" PRIu32 "=%u", i > 0 ? "," : "", plan->list[i].at, plan->list[i].option);
	}
	if (plan->workers != 0)
		put(&w, ":workers=%u", plan->workers);
	if (plan->steps != 0)
		put(&w, ":steps=%" PRIu32, plan->steps);
	if (plan->ignore_leaks)
		put(&w, ":leaks=0");
	put_faults(&w, plan);
	return w.length < size;
}
