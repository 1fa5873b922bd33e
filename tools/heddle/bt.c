/* bt.c - `heddle bt`: where processes are, equal backtraces together. */
#define _GNU_SOURCE
#include <ctype.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "help.h"
#include "inspect.h"
#include "json.h"
#include "modules.h"
#include "process/process.h"
#include "resolve.h"
#include "say.h"
#include "stop.h"
#include "traces.h"

#define NAMES_MAX 6		   /* processes that are named of those with one backtrace */
#define COPY_MAX ((size_t)1 << 20) /* bytes of a stack that are copied while its process is stopped */

/* What the command line asks for. */
struct wish {
	bool json, all, stop;
	const char *root;
	char **ids;
	int id_count;
};

/* ---- which processes ---- */

/* An hd_pid, or a slot with or without a generation: "12", "#12", "12.3". */
static bool is_id_of(const char *word, const struct row *r)
{
	char *end;
	const char *digits = word[0] == '#' ? word + 1 : word;
	uint64_t number = strtoull(digits, &end, 10), generation = 0;

	if (!isdigit((unsigned char)digits[0]))
		die("%s is not the id of a process: 12, 12.3, or an hd_pid", word);
	if (*end == '.' && isdigit((unsigned char)end[1]))
		generation = strtoull(end + 1, &end, 10);
	if (*end != 0)
		die("%s is not the id of a process: 12, 12.3, or an hd_pid", word);
	if (number >= HD__SLOTS)
		return number == (uint64_t)r->pid;
	return number == r->slot && (generation == 0 || generation == HD__GENERATION(r->pid));
}

static uint32_t *choose(const struct census *c, const struct wish *wish, uint32_t *n)
{
	uint32_t *rows = need(malloc(((size_t)c->count + 1) * sizeof *rows));

	*n = 0;
	for (uint32_t i = 0; i < c->count; i++) {
		bool wanted = wish->id_count == 0;
		for (int k = 0; k < wish->id_count && !wanted; k++)
			wanted = is_id_of(wish->ids[k], &c->rows[i]);
		if (wanted)
			rows[(*n)++] = i;
	}
	for (int k = 0; k < wish->id_count; k++) {
		bool found = false;
		for (uint32_t i = 0; i < *n && !found; i++)
			found = is_id_of(wish->ids[k], &c->rows[rows[i]]);
		if (!found)
			die("%s: there is no process %s; `heddle ps` lists them", c->m->name, wish->ids[k]);
	}
	return rows;
}

/* ---- those that run ---- */

struct stopping {
	struct census *c;
	uint32_t worker;
	struct stopped *to;
	bool found;
};

static uint64_t top_of(const struct row *r)
{
	return r->stack + (UINT64_C(1) << r->stack_class);
}

/* While its thread stands still: which process that is, and its stack. */
static void copy_runner(void *arg, const struct registers *registers)
{
	struct stopping *s = arg;
	const struct row *r = census_runner(s->c, s->worker);

	if (r == NULL || r->stack == 0)
		return;
	bool on_it = registers->sp >= r->stack && registers->sp < top_of(r);
	*s->to = (struct stopped){ .row = (uint32_t)(r - s->c->rows),
				   .registers = *registers,
				   .top = on_it ? top_of(r) : registers->sp };
	size_t size = (size_t)(s->to->top - registers->sp);
	if (size > COPY_MAX)
		size = COPY_MAX;
	s->to->bytes = need(malloc(size + 1));
	if (memory_read(s->c->m, registers->sp, s->to->bytes, size))
		s->to->size = size;
	s->found = true;
}

/* Those whose registers can be had. */
static struct stopped *find_stopped(struct census *c, const struct wish *wish, uint32_t *n)
{
	struct stopped *all = need(calloc(c->nworkers + (size_t)1, sizeof *all));
	char why[256];

	*n = 0;
	for (uint32_t w = 0; w < c->nworkers; w++) {
		struct stopping s = { c, w, &all[*n], false };
		struct registers registers;
		if (c->workers[w].thread == 0 || c->workers[w].running == 0)
			continue;
		if (c->m->ops->registers != NULL) {
			if (c->m->ops->registers(c->m, c->workers[w].thread, &registers))
				copy_runner(&s, &registers);
		} else if (wish->stop && !stop_thread(c->workers[w].thread, copy_runner, &s, why, sizeof why)) {
			fprintf(stderr, "heddle: warning: %s\n", why);
		}
		*n += s.found;
	}
	return all;
}

/* ---- groups ---- */

#define COMPARE(x, y) ((x) < (y) ? -1 : (x) > (y))

enum reason { TRACED, RUNS, MEANWHILE, LOST, TURNS, BEHAVIOUR, FRESH, ENDED };

struct member {
	uint32_t row, trace;
	uint64_t function; /* of one without a stack; else what else tells groups apart */
	uint8_t reason, state, why;
};

/* What is told at once: processes with one backtrace. */
struct group {
	struct member *first;
	uint32_t n;
};

/* For each trace the first one that looks the same. */
struct look {
	const char *text;
	uint32_t trace;
};

static int compare_looks(const void *a, const void *b)
{
	const struct look *x = a, *y = b;
	int order = strcmp(x->text, y->text);

	return order != 0 ? order : COMPARE(x->trace, y->trace);
}

static uint32_t *find_equals(char *const *texts, uint32_t n)
{
	struct look *looks = need(malloc((n + (size_t)1) * sizeof *looks));
	uint32_t *first = need(malloc((n + (size_t)1) * sizeof *first));

	for (uint32_t i = 0; i < n; i++)
		looks[i] = (struct look){ texts[i], i };
	qsort(looks, n, sizeof *looks, compare_looks);
	for (uint32_t i = 0; i < n; i++)
		first[looks[i].trace] =
			i > 0 && strcmp(looks[i - 1].text, looks[i].text) == 0 ? first[looks[i - 1].trace] : looks[i].trace;
	free(looks);
	return first;
}

static struct member member_of(const struct census *c, const struct traces *t, uint32_t row, uint32_t trace)
{
	const struct row *r = &c->rows[row];
	struct member m = { .row = row, .trace = trace, .state = r->state, .why = r->why, .reason = TRACED };

	if (trace < t->count)
		return m;
	m.trace = NOT_FOUND;
	if (r->state == HD_ENDED)
		m.reason = ENDED;
	else if (r->state == HD_RUNNING)
		m.reason = RUNS;
	else if (trace == NOT_WALKED)
		m.reason = MEANWHILE;
	else if (r->stack != 0)
		m.reason = LOST;
	else if (r->nature & HD__BEHAVIOUR)
		m.reason = BEHAVIOUR;
	else if (r->nature & HD__MACHINE)
		m.reason = TURNS;
	else
		m.reason = FRESH;
	if (m.reason == RUNS)
		m.function = (uint64_t)r->pid; /* each alone */
	if (m.reason == BEHAVIOUR || m.reason == TURNS || m.reason == FRESH)
		m.function = r->function;
	return m;
}

static int compare_kinds(const struct member *x, const struct member *y)
{
	int order = COMPARE(x->reason, y->reason);

	order = order != 0 ? order : COMPARE(x->trace, y->trace);
	order = order != 0 ? order : COMPARE(x->function, y->function);
	order = order != 0 ? order : COMPARE(x->state, y->state);
	return order != 0 ? order : COMPARE(x->why, y->why);
}

static int compare_members(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	int order = compare_kinds(x, y);

	return order != 0 ? order : COMPARE(x->row, y->row);
}

/* Those with more processes first. */
static int compare_groups(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return x->n != y->n ? (x->n > y->n ? -1 : 1) : COMPARE(x->first->row, y->first->row);
}

static struct group *fold(const struct census *c, const struct traces *t, const uint32_t *rows, uint32_t n,
			  struct member **members, uint32_t *count)
{
	struct group *groups = NULL;

	*members = need(malloc(((size_t)n + 1) * sizeof **members));
	for (uint32_t i = 0; i < n; i++)
		(*members)[i] = member_of(c, t, rows[i], t->of[i]);
	qsort(*members, n, sizeof **members, compare_members);
	*count = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (i > 0 && compare_kinds(&(*members)[i - 1], &(*members)[i]) == 0) {
			groups[*count - 1].n++;
			continue;
		}
		if ((*count & (*count + 1)) == 0)
			groups = need(realloc(groups, (2 * (size_t)*count + 2) * sizeof *groups));
		groups[(*count)++] = (struct group){ &(*members)[i], 1 };
	}
	if (groups != NULL)
		qsort(groups, *count, sizeof *groups, compare_groups);
	return groups;
}

/* ---- frames ---- */

/* A place of a backtrace, or, without debug information, an address. */
struct frame {
	uint64_t address;
	const struct place *place; /* NULL: nothing is known */
	const struct module *module;
	bool own; /* heddle's own, below the call that the program made */
};

static const char *file_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

static bool has_prefix(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_public(const struct frame *f)
{
	return f->place != NULL && has_prefix(f->place->function, "hd_") && !has_prefix(f->place->function, "hd__");
}

/* The directory above that of a file. */
static size_t above(const char *file)
{
	const char *slash = strrchr(file, '/');

	while (slash != NULL && slash > file && *--slash != '/')
		;
	return slash != NULL ? (size_t)(slash - file) : 0;
}

/* The length of the name of heddle's source directory, and a file in it, as far as the frames tell. */
static size_t find_source(const struct frame *frames, uint32_t n, const char **file)
{
	for (uint32_t i = n; i-- > 0;) /* what begins a process is last */
		if (frames[i].place != NULL && has_prefix(frames[i].place->function, "hd__") &&
		    above(*file = frames[i].place->file) > 0)
			return above(*file);
	*file = "";
	return 0;
}

/* Whether it is a function of heddle's that programs do not call, or the kernel's way back from a signal. */
static bool is_internal(const struct frame *f, const char *source, size_t length)
{
	const struct place *p = f->place;

	if (is_public(f))
		return false;
	return (f->module != NULL && has_prefix(file_of(f->module->path), "libheddle.so")) ||
	       (p != NULL && (has_prefix(p->function, "hd__") || strcmp(p->function, "__restore_rt") == 0 ||
			      strcmp(p->function, "__kernel_rt_sigreturn") == 0 ||
			      (length > 0 && strncmp(p->file, source, length) == 0 && above(p->file) == length)));
}

/* All frames of a trace; more than its addresses, where functions were inlined. What heddle does inside a call of the program's, and what begins a
 * process, is marked as heddle's own; but never all of it. */
static struct frame *frames_of(const struct traces *t, const struct modules *modules, const struct trace *trace, uint32_t *n)
{
	struct frame *frames = NULL;
	const char *source;

	*n = 0;
	for (uint32_t i = 0; i < trace->count; i++) {
		uint32_t places;
		uint64_t address = t->address[trace->first + i];
		const struct place *place = traces_places(t, address, &places);
		for (uint32_t k = 0; k < (places > 0 ? places : 1); k++) {
			if ((*n & (*n + 1)) == 0)
				frames = need(realloc(frames, (2 * (size_t)*n + 2) * sizeof *frames));
			frames[(*n)++] =
				(struct frame){ address, places > 0 ? place + k : NULL, modules_at(modules, address), false };
		}
	}
	size_t length = find_source(frames, *n, &source);
	for (uint32_t i = 0; i < *n && is_internal(&frames[i], source, length); i++)
		frames[i].own = true;
	if (*n > 0 && frames[*n - 1].own) { /* all of it is heddle's: that is what there is to be told */
		for (uint32_t i = 0; i < *n; i++)
			frames[i].own = false;
		return frames;
	}
	for (uint32_t i = *n; !trace->cut && is_internal(&frames[i - 1], source, length); i--)
		frames[i - 1].own = true;
	return frames;
}

static void print_frame(FILE *to, const struct frame *f)
{
	const struct place *p = f->place;
	char where[400] = "";

	if (f->module != NULL)
		snprintf(where, sizeof where, "%s+0x%" PRIx64, f->module->path[0] != 0 ? file_of(f->module->path) : "?",
			 f->address - f->module->bias);
	else
		snprintf(where, sizeof where, "0x%" PRIx64, f->address);
	if (p == NULL)
		fprintf(to, "    at %s\n", where);
	else if (p->file[0] != 0 && p->line != 0)
		fprintf(to, "    in %s, %s:%" PRIu32 "%s\n", p->function[0] != 0 ? p->function : "?", p->file, p->line,
			p->inlined ? ", inlined" : "");
	else
		fprintf(to, "    in %s, %s\n", p->function[0] != 0 ? p->function : "?", where);
}

static char *text_of(const struct traces *t, const struct modules *modules, const struct trace *trace, bool all)
{
	char *text = NULL;
	size_t size;
	uint32_t n;
	struct frame *frames = frames_of(t, modules, trace, &n);
	FILE *to = need(open_memstream(&text, &size));

	for (uint32_t i = 0; i < n; i++)
		if (all || !frames[i].own)
			print_frame(to, &frames[i]);
	if (trace->cut)
		fprintf(to, "    and more\n");
	fclose(to);
	free(frames);
	return need(text);
}

/* ---- text ---- */

static void print_function(const struct traces *t, const struct modules *modules, uint64_t function, const char *text)
{
	uint32_t n;
	const struct place *p = traces_places(t, function, &n);
	const struct module *module = modules_at(modules, function);

	if (p != NULL && p->function[0] != 0)
		printf("%s%s", text, p->function);
	else if (module != NULL)
		printf("%s%s+0x%" PRIx64, text, file_of(module->path), function - module->bias);
}

static const char *doing_of(const struct census *c, const struct row *r, bool many, char text[320])
{
	char object[WHO_SIZE] = "", holder[WHO_SIZE] = "", since[32];

	if (r->state == HD_WAITING && many)
		snprintf(text, 320, "wait in %s", call_of(c, r));
	else if (r->state == HD_WAITING)
		snprintf(text, 320, "waits in %s%s%s%s%s, for %s%s%s", call_of(c, r),
			 object_of(c, r, object)[0] != 0 ? ", " : "", object,
			 r->holder == 0	  ? ""
			 : r->object != 0 ? ", held by "
					  : ", for ",
			 r->holder != 0 ? who(c, r->holder, holder) : "", span(r->since, c->now, since),
			 r->timed ? ", with a deadline" : "", r->suspended ? ", suspended" : "");
	else if (many)
		snprintf(text, 320, "are %s", state_of(r));
	else if (r->state == HD_RUNNING)
		snprintf(text, 320, "runs on worker %d, for %s", (int)r->worker, span(r->since, c->now, since));
	else
		snprintf(text, 320, "is %s, for %s", state_of(r), span(r->since, c->now, since));
	return text;
}

static void print_head(const struct census *c, const struct group *g)
{
	char text[320], name[WHO_SIZE];
	const struct row *r = &c->rows[g->first->row];

	if (g->n == 1 && r->state == HD_ENDED) {
		printf("%s\n", who(c, r->pid, name));
		return;
	}
	if (g->n == 1) {
		printf("%s %s\n", who(c, r->pid, name), doing_of(c, r, false, text));
		return;
	}
	printf("%" PRIu32 " processes %s: ", g->n, doing_of(c, r, true, text));
	for (uint32_t i = 0; i < g->n && i < NAMES_MAX; i++)
		printf("%s%s", i > 0 ? ", " : "", who(c, c->rows[g->first[i].row].pid, name));
	if (g->n > NAMES_MAX)
		printf(" and %" PRIu32 " more", g->n - NAMES_MAX);
	putchar('\n');
}

static void print_reason(const struct census *c, const struct traces *t, const struct modules *modules, const struct group *g)
{
	const struct row *r = &c->rows[g->first->row];
	int32_t thread = r->worker >= 0 ? c->workers[r->worker].thread : 0;

	switch ((enum reason)g->first->reason) {
	case TRACED:
		return;
	case RUNS:
		printf("    it runs%s: its registers are in the kernel", c->m->live ? "" : ", and the file has not its thread");
		if (thread != 0)
			printf(", with thread %" PRId32 "%s", thread, c->m->live ? "; `--stop` stops that for a moment" : "");
		break;
	case MEANWHILE:
		printf("    it has run while it was looked at");
		break;
	case LOST:
		printf("    its stack cannot be walked: it is leaving it, or the memory was overwritten, or there are too many "
		       "different ones");
		break;
	case TURNS:
		print_function(t, modules, g->first->function, "    a machine has no stack between its turns: ");
		break;
	case BEHAVIOUR:
		print_function(t, modules, g->first->function, "    a behaviour has no stack before it begins: ");
		break;
	case FRESH:
		print_function(t, modules, g->first->function, "    has not begun: ");
		break;
	case ENDED:
		printf("    it was neither joined nor detached");
		break;
	}
	putchar('\n');
}

static void print_group(const struct census *c, const struct traces *t, const struct modules *modules, const struct group *g,
			char *const *texts)
{
	print_head(c, g);
	print_reason(c, t, modules, g);
	if (g->first->reason == TRACED)
		fputs(texts[g->first->trace], stdout);
}

/* ---- JSON: docs/bt.schema.json ---- */

static void print_json_frame(const struct frame *f)
{
	printf("{\"address\":\"0x%" PRIx64 "\"", f->address);
	if (f->module != NULL) {
		printf(",\"module\":");
		json_string(f->module->path);
		printf(",\"offset\":\"0x%" PRIx64 "\"", f->address - f->module->bias);
	}
	if (f->place != NULL && f->place->function[0] != 0) {
		printf(",\"function\":");
		json_string(f->place->function);
	}
	if (f->place != NULL && f->place->file[0] != 0) {
		printf(",\"file\":");
		json_string(f->place->file);
		printf(",\"line\":%" PRIu32, f->place->line);
	}
	printf(",\"inlined\":%s,\"own\":%s}", json_truth(f->place != NULL && f->place->inlined), json_truth(f->own));
}

static void print_json_group(const struct census *c, const struct traces *t, const struct modules *modules,
			     const struct group *g)
{
	static const char *const reasons[] = {
		"walked", "runs", "has run", "lost", "machine", "behaviour", "not begun", "ended"
	};
	const struct trace *trace = g->first->reason == TRACED ? &t->list[g->first->trace] : NULL;
	uint32_t n = 0;
	struct frame *frames = trace != NULL ? frames_of(t, modules, trace, &n) : NULL;

	printf("{\"count\":%" PRIu32 ",\"stack\":\"%s\",\"cut\":%s,\"frames\":[", g->n, reasons[g->first->reason],
	       json_truth(trace != NULL && trace->cut));
	for (uint32_t i = 0; i < n; i++) {
		printf(i > 0 ? "," : "");
		print_json_frame(&frames[i]);
	}
	printf("],\"processes\":[");
	for (uint32_t i = 0; i < g->n; i++) {
		const struct row *r = &c->rows[g->first[i].row];
		printf("%s{\"pid\":%" PRId64 ",\"name\":", i > 0 ? "," : "", r->pid);
		json_string(r->name);
		printf(",\"state\":\"%s\",\"worker\":%d", state_of(r), (int)r->worker);
		if (r->state == HD_RUNNING && r->worker >= 0 && c->workers[r->worker].thread != 0)
			printf(",\"thread\":%" PRId32, c->workers[r->worker].thread);
		if (trace != NULL && r->state != HD_RUNNING)
			printf(",\"context\":{\"sp\":\"0x%" PRIx64 "\",\"fp\":\"0x%" PRIx64 "\",\"pc\":\"0x%" PRIx64 "\"}",
			       r->sp, r->fp, r->pc);
		printf("}");
	}
	printf("]}");
	free(frames);
}

/* ---- the command ---- */

static void tell(struct census *c, const struct wish *wish, bool first)
{
	struct traces t;
	struct modules modules;
	struct member *members;
	uint32_t n, stopped_count, count, *rows = choose(c, wish, &n);
	struct stopped *stopped = find_stopped(c, wish, &stopped_count);
	char **texts = NULL;

	traces_take(&t, &(struct wish_of_traces){ c, rows, n, stopped, stopped_count, wish->root });
	if (t.why[0] != 0)
		fprintf(stderr, "heddle: warning: some backtraces are missing: %s\n", t.why);
	modules_find(&modules, c->m);
	if (!wish->json) {
		texts = need(malloc((t.count + (size_t)1) * sizeof *texts));
		for (uint32_t i = 0; i < t.count; i++)
			texts[i] = text_of(&t, &modules, &t.list[i], wish->all);
		uint32_t *equal = find_equals(texts, t.count);
		for (uint32_t i = 0; i < n; i++)
			t.of[i] = t.of[i] < t.count ? equal[t.of[i]] : t.of[i];
		free(equal);
	}
	struct group *groups = fold(c, &t, rows, n, &members, &count);
	if (wish->json) {
		printf("%s{\"file\":", first ? "" : ",");
		json_string(c->copy->path);
		printf(",\"library\":");
		json_string(c->copy->inside.library);
		printf(",\"complete\":%s,\"groups\":[", json_truth(t.why[0] == 0));
		for (uint32_t i = 0; i < count; i++) {
			printf(i > 0 ? ",\n" : "\n");
			print_json_group(c, &t, &modules, &groups[i]);
		}
		printf("]}");
	} else {
		if (!first)
			putchar('\n');
		print_headline(c);
		for (uint32_t i = 0; i < count; i++)
			print_group(c, &t, &modules, &groups[i], texts);
	}
	for (uint32_t i = 0; texts != NULL && i < t.count; i++)
		free(texts[i]);
	free(texts);
	free(groups);
	free(members);
	modules_drop(&modules);
	traces_drop(&t);
	for (uint32_t i = 0; i < stopped_count; i++)
		free(stopped[i].bytes);
	free(stopped);
	free(rows);
}

int bt_main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "all", no_argument, NULL, 'a' },
		{ "json", no_argument, NULL, 'j' },
		{ "resolve", no_argument, NULL, 'r' },
		{ "root", required_argument, NULL, 'd' },
		{ "stop", no_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	static struct inspected target;
	struct wish wish = { 0 };
	bool resolves = false;
	int option;

	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1)
		switch (option) {
		case 'a':
			wish.all = true;
			break;
		case 'j':
			wish.json = true;
			break;
		case 'r':
			resolves = true;
			break;
		case 'd':
			wish.root = optarg;
			break;
		case 's':
			wish.stop = true;
			break;
		case 'h':
			help("bt");
			return 0;
		default:
			return 2;
		}
	if (resolves ? optind != argc : optind >= argc)
		die(resolves ? "`heddle bt --resolve` reads what it resolves: heddle bt --resolve <LOG"
			     : "which program? `heddle bt PID`, or a core file, or the name of a program; `heddle help bt` "
			       "explains");
	if (!unwind_is_there)
		die("this command was built without libdw of elfutils, which reads debug information: install Debian's "
		    "libdw-dev, and build heddle again");
	if (resolves)
		return resolve(stdin, stdout, wish.root);
	wish.ids = argv + optind + 1;
	wish.id_count = argc - optind - 1;
	inspect(&target, argv[optind], wish.json);
	if (wish.json) {
		printf("{\"format\":1,\"target\":");
		json_string(target.memory.name);
		printf(",\"pid\":%d,\"live\":%s,\"truncated\":%s,\"runtimes\":[", (int)target.memory.pid,
		       json_truth(target.memory.live), json_truth(target.memory.truncated));
	}
	for (size_t i = 0; i < target.running; i++)
		tell(&target.censuses[i], &wish, i == 0);
	if (wish.json)
		printf("]}\n");
	inspect_end(&target);
	return 0;
}
