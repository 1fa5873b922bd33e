/* ps.c - `heddle ps`: what each process of a program does. */
#define _GNU_SOURCE
#include <fnmatch.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "help.h"
#include "inspect.h"
#include "json.h"
#include "process/process.h"
#include "say.h"

/* What the command line asks for. */
struct wish {
	int state;	    /* enum hd_state; 0: any */
	const char *name;   /* a pattern, or NULL */
	unsigned low, high; /* priorities */
	int (*compare)(const struct row *a, const struct row *b);
	uint32_t first; /* at most so many; 0: all */
	bool json;
};

static bool is_wanted(const struct wish *wish, const struct row *r)
{
	unsigned priority = r->lent > r->own ? r->lent : r->own;

	return (wish->state == 0 || wish->state == r->state) && (wish->name == NULL || fnmatch(wish->name, r->name, 0) == 0) &&
	       priority >= wish->low && priority <= wish->high;
}

/* ---- orders ---- */

#define DESCENDING(x, y) ((x) > (y) ? -1 : (x) < (y))

static int by_id(const struct row *a, const struct row *b)
{
	return a->slot < b->slot ? -1 : a->slot > b->slot;
}

static int by_name(const struct row *a, const struct row *b)
{
	return strcmp(a->name, b->name);
}

static int by_state(const struct row *a, const struct row *b)
{
	static const int order[] = { 5, 1, 0, 3, 2, 4 }; /* running, ready, suspended, waiting, ended */
	return order[a->state] - order[b->state];
}

static int by_priority(const struct row *a, const struct row *b)
{
	return DESCENDING(a->lent > a->own ? a->lent : a->own, b->lent > b->own ? b->lent : b->own);
}

static int by_cpu(const struct row *a, const struct row *b)
{
	return DESCENDING(a->cpu_time, b->cpu_time);
}

static int by_switches(const struct row *a, const struct row *b)
{
	return DESCENDING(a->switches, b->switches);
}

static int by_time(const struct row *a, const struct row *b)
{
	return a->since < b->since ? -1 : a->since > b->since;
}

static int by_stack(const struct row *a, const struct row *b)
{
	return DESCENDING(a->stack_used, b->stack_used);
}

static int by_waiters(const struct row *a, const struct row *b)
{
	return DESCENDING(a->waiters, b->waiters);
}

static const struct {
	const char *name;
	int (*compare)(const struct row *a, const struct row *b);
} orders[] = { { "id", by_id },		 { "name", by_name }, { "state", by_state },	   { "priority", by_priority },
	       { "cpu", by_cpu },	 { "for", by_time },  { "switches", by_switches }, { "stack", by_stack },
	       { "waiters", by_waiters } };

static int compare_rows(const void *a, const void *b, void *wish)
{
	const struct row *x = *(const struct row *const *)a, *y = *(const struct row *const *)b;
	int order = ((const struct wish *)wish)->compare(x, y);

	return order != 0 ? order : by_id(x, y);
}

/* Those that are wanted, in their order. *left_out are more than are shown. */
static const struct row **choose(const struct census *c, struct wish *wish, uint32_t *n, uint32_t *left_out)
{
	const struct row **chosen = need(malloc((c->count + 1) * sizeof *chosen));

	*n = 0;
	for (uint32_t i = 0; i < c->count; i++)
		if (is_wanted(wish, &c->rows[i]))
			chosen[(*n)++] = &c->rows[i];
	if (wish->compare != NULL)
		qsort_r(chosen, *n, sizeof *chosen, compare_rows, wish);
	*left_out = wish->first != 0 && *n > wish->first ? *n - wish->first : 0;
	*n -= *left_out;
	return chosen;
}

/* ---- the table ---- */

static const char *bytes_of(uint64_t n, char text[16])
{
	if (n < UINT64_C(1) << 20)
		snprintf(text, 16, "%" PRIu64 "K", n >> 10);
	else
		snprintf(text, 16, "%" PRIu64 "M", n >> 20);
	return text;
}

/* What a process does, and what others want of it. */
static void print_doing(const struct census *c, const struct row *r)
{
	char text[WHO_SIZE], object[WHO_SIZE], holder[WHO_SIZE];
	const char *comma = "";

	if (r->state == HD_WAITING) {
		object_of(c, r, object);
		printf("%s%s%s", call_of(c, r), object[0] != 0 ? ", " : "", object);
		if (r->holder != 0)
			printf(r->object != 0 ? ", held by %s" : ", for %s", who(c, r->holder, holder));
		printf("%s%s", r->timed ? ", with a deadline" : "", r->suspended ? ", suspended" : "");
		comma = "; ";
	} else if (r->state == HD_SUSPENDED && r->switches == 0) {
		printf("has not begun");
		comma = "; ";
	}
	if (r->waiters > 0) {
		const struct row *first = &c->rows[r->first];
		object_of(c, first, object);
		printf("%s%s waits for %s", comma, who(c, first->pid, text), object[0] != 0 ? "its " : "it");
		if (object[0] != 0)
			printf("%s", object);
		if (r->waiters > 1)
			printf(", and %" PRIu32 " more for what it has", r->waiters - 1);
		comma = "; ";
	}
	if (r->ending && r->state != HD_ENDED) {
		printf("%sis to end", comma);
		comma = "; ";
	}
	if (r->changing)
		printf("%schanging", comma);
}

/* What it has run; its present turn, which the program counts when it is over, included. */
static int64_t cpu_of(const struct census *c, const struct row *r)
{
	int64_t turn = r->state == HD_RUNNING ? age_of(c, r) : 0;

	return r->cpu_time > 0 && r->cpu_time < INT64_MAX - turn ? r->cpu_time + turn : turn;
}

static void print_row(const struct census *c, const struct row *r)
{
	char id[WHO_SIZE], priority[16], worker[16] = "-", state[32], since[32], cpu[32], stack[40] = "-", used[16], size[16];

	if (r->lent > r->own)
		snprintf(priority, sizeof priority, "%u>%u", r->own, r->lent);
	else
		snprintf(priority, sizeof priority, "%u", r->own);
	if (r->worker >= 0)
		snprintf(worker, sizeof worker, "%d%s", (int)r->worker, r->pinned ? "p" : "");
	if (r->stack != 0)
		snprintf(stack, sizeof stack, "%s/%s", bytes_of(r->stack_used, used),
			 bytes_of(UINT64_C(1) << r->stack_class, size));
	snprintf(state, sizeof state, "%s%s", state_of(r), r->nature & HD__DAEMON ? ",d" : "");
	printf("%-9s %-16s %-9s %-11s %-6s %-6s %3s %12s %11s %10" PRIu64 " %10s  ", id_of(r->pid, id),
	       r->name[0] != 0 ? r->name : "-", kind_of(r), state, priority, policy_of(r), worker,
	       span(r->since, c->now, since), span(0, cpu_of(c, r), cpu), r->switches, stack);
	print_doing(c, r);
	putchar('\n');
}

static void print_table(const struct census *c, struct wish *wish)
{
	uint32_t n, left_out;
	const struct row **rows = choose(c, wish, &n, &left_out);

	print_headline(c);
	printf("%-9s %-16s %-9s %-11s %-6s %-6s %3s %12s %11s %10s %10s  %s\n", "ID", "NAME", "KIND", "STATE", "PRIO", "POLICY",
	       "WRK", "FOR", "CPU", "SWITCHES", "STACK", "DOING");
	for (uint32_t i = 0; i < n; i++)
		print_row(c, rows[i]);
	if (left_out > 0)
		printf("and %" PRIu32 " more\n", left_out);
	free(rows);
}

/* ---- JSON: docs/ps.schema.json ---- */

static void print_holder(const struct row *r)
{
	if (r->holder > 0)
		printf(",\"holder\":{\"pid\":%" PRId64 "}", r->holder);
	else if (r->holder < 0)
		printf(",\"holder\":{\"thread\":%" PRId64 "}", -r->holder);
}

static void print_json_row(const struct census *c, const struct row *r)
{
	printf("{\"pid\":%" PRId64 ",\"slot\":%" PRIu32 ",\"generation\":%" PRIu64 ",\"name\":", r->pid, r->slot,
	       HD__GENERATION(r->pid));
	json_string(r->name);
	printf(",\"kind\":\"%s\",\"state\":\"%s\",\"suspended\":%s,\"ending\":%s,\"daemon\":%s,\"detached\":%s,\"pinned\":%s,"
	       "\"changing\":%s",
	       kind_of(r), state_of(r), json_truth(r->suspended), json_truth(r->ending), json_truth(r->nature & HD__DAEMON),
	       json_truth(r->detached), json_truth(r->pinned), json_truth(r->changing));
	printf(",\"priority\":%u,\"lent\":%u,\"policy\":\"%s\",\"worker\":%d,\"since\":%" PRId64 ",\"cpu\":%" PRId64
	       ",\"switches\":%" PRIu64,
	       r->own, r->lent, policy_of(r), (int)r->worker, r->since, r->cpu_time, r->switches);
	printf(",\"stack\":{\"size\":%" PRIu64 ",\"used\":%" PRIu64 "},\"function\":\"0x%" PRIx64 "\"",
	       r->stack != 0 ? UINT64_C(1) << r->stack_class : 0, r->stack_used, r->function);
	if (r->state == HD_WAITING) {
		printf(",\"waits\":{\"call\":");
		json_string(call_of(c, r));
		if (r->object != 0) {
			printf(",\"object\":{\"kind\":");
			json_string(object_kind(c, r));
			printf(",\"address\":\"0x%" PRIx64 "\"}", r->object);
		}
		if (r->fd >= 0)
			printf(",\"fd\":%d", (int)r->fd);
		print_holder(r);
		printf(",\"deadline\":%s}", json_truth(r->timed));
	}
	printf(",\"waiters\":[");
	for (uint32_t i = r->first; i != NONE; i = c->rows[i].next)
		printf("%s%" PRId64, i == r->first ? "" : ",", c->rows[i].pid);
	printf("]}");
}

static void print_json_copy(const struct census *c, struct wish *wish)
{
	uint32_t n, left_out;
	const struct row **rows = choose(c, wish, &n, &left_out);

	printf("{\"file\":");
	json_string(c->copy->path);
	printf(",\"library\":");
	json_string(c->copy->inside.library);
	printf(",\"now\":%" PRId64 ",\"exact\":%s,\"stopping\":%s,\"count\":%" PRIu32 ",\"missing\":%" PRIu32
	       ",\"left_out\":%" PRIu32 ",\"workers\":[",
	       c->now, json_truth(c->now_is_exact), json_truth(c->stopping), c->count, c->missing, left_out);
	for (uint32_t i = 0; i < c->nworkers; i++)
		printf("%s{\"running\":%" PRId64 ",\"ready\":%" PRIu32 ",\"asleep\":%s,\"switches\":%" PRIu64 "}",
		       i > 0 ? "," : "", c->workers[i].running, c->workers[i].ready, json_truth(c->workers[i].asleep),
		       c->workers[i].switches);
	printf("],\"processes\":[");
	for (uint32_t i = 0; i < n; i++) {
		printf(i > 0 ? ",\n" : "\n");
		print_json_row(c, rows[i]);
	}
	printf("]}");
	free(rows);
}

void ps_print(const struct census *c, bool json)
{
	struct wish wish = { .high = UINT8_MAX };

	if (json)
		print_json_copy(c, &wish);
	else
		print_table(c, &wish);
}

/* ---- the command ---- */

static int state_option(const char *text)
{
	static const char *const names[] = { "ready", "running", "waiting", "suspended", "ended" };

	for (int i = 0; i < 5; i++)
		if (strcmp(text, names[i]) == 0)
			return HD_READY + i;
	die("--state %s: expected ready, running, waiting, suspended or ended", text);
}

static void priority_option(struct wish *wish, char *text)
{
	char *dash = strchr(text, '-');

	if (dash != NULL)
		*dash = 0;
	wish->low = (unsigned)number_option("--priority", text, HD__PRIORITY_MIN, HD__PRIORITY_MAX);
	wish->high = dash != NULL ? (unsigned)number_option("--priority", dash + 1, wish->low, HD__PRIORITY_MAX) : wish->low;
}

static void sort_option(struct wish *wish, const char *text)
{
	for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++)
		if (strcmp(orders[i].name, text) == 0)
			wish->compare = orders[i].compare;
	if (wish->compare == NULL)
		die("--sort %s: expected id, name, state, priority, cpu, for, switches, stack or waiters", text);
}

int ps_main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "state", required_argument, NULL, 's' },    { "name", required_argument, NULL, 'n' },
		{ "priority", required_argument, NULL, 'p' }, { "sort", required_argument, NULL, 'o' },
		{ "first", required_argument, NULL, 'f' },    { "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },	      { NULL, 0, NULL, 0 },
	};
	static struct inspected target;
	struct wish wish = { .high = UINT8_MAX };
	int option;

	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1)
		switch (option) {
		case 's':
			wish.state = state_option(optarg);
			break;
		case 'n':
			wish.name = optarg;
			break;
		case 'p':
			priority_option(&wish, optarg);
			break;
		case 'o':
			sort_option(&wish, optarg);
			break;
		case 'f':
			wish.first = (uint32_t)number_option("--first", optarg, 1, UINT32_MAX);
			break;
		case 'j':
			wish.json = true;
			break;
		case 'h':
			help("ps");
			return 0;
		default:
			return 2;
		}
	if (optind + 1 != argc)
		die("which program? `heddle ps PID`, or a core file, or the name of a program; `heddle help ps` explains");
	inspect(&target, argv[optind], wish.json);
	if (wish.json) {
		printf("{\"format\":1,\"target\":");
		json_string(target.memory.name);
		printf(",\"pid\":%d,\"live\":%s,\"truncated\":%s,\"runtimes\":[", (int)target.memory.pid,
		       json_truth(target.memory.live), json_truth(target.memory.truncated));
	}
	for (size_t i = 0; i < target.running; i++) {
		struct census *c = &target.censuses[i];
		census_measure_stacks(c);
		if (wish.json) {
			printf(i > 0 ? "," : "");
			print_json_copy(c, &wish);
		} else {
			printf(i > 0 ? "\n" : "");
			print_table(c, &wish);
		}
	}
	if (wish.json)
		printf("]}\n");
	inspect_end(&target);
	return 0;
}
