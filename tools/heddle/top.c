/* top.c - `heddle top`: a table of the processes of a program, taken anew each second.
 *
 * It writes to the terminal by the few sequences that every terminal has known since the VT100, and no library: nothing to look up, nothing to install. When
 * stdout is no terminal, or --once asks for it, one table is written as plain text. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "help.h"
#include "inspect.h"
#include "process/process.h"
#include "say.h"

#define HOG 100000000	   /* ns without a switch */
#define STARVED 1000000000 /* ns ready */
#define GROWS 4		   /* looks in a row with more messages than at the one before */
#define WARNINGS_MAX 8
#define WIDTH_MIN 20
#define WIDTH_MAX 1000
#define ONCE_LINES 40

enum key { BY_CPU, BY_WAIT, BY_QUEUE };

/* What is kept of one look for the next. */
struct before {
	struct {
		int64_t pid, cpu;
	} * rows; /* by slot, as in the census */
	uint32_t count;
	int64_t at;
	int64_t idle[1024];
	uint64_t switches[1024];
	int64_t messages;
	unsigned grows;
};

struct line {
	const struct row *row;
	double share; /* of a CPU */
};

struct top {
	struct inspected target;
	struct census census;
	struct before before;
	struct line *lines;
	uint32_t count;
	enum key key;
	unsigned width, height;
	bool screen; /* a terminal is being drawn on */
	char *text;
	size_t size;
	FILE *out;
};

/* ---- the terminal ---- */

static struct termios usual;
static bool is_raw;
static volatile sig_atomic_t resized, ended;

static void on_resize(int signal)
{
	(void)signal;
	resized = 1;
}

static void on_end(int signal)
{
	(void)signal;
	ended = 1;
}

static void leave_screen(void)
{
	static const char sequence[] = "\033[?25h\033[?1049l"; /* the cursor again; the screen that was there before */

	if (!is_raw)
		return;
	is_raw = false;
	tcsetattr(STDIN_FILENO, TCSADRAIN, &usual);
	if (write(STDOUT_FILENO, sequence, sizeof sequence - 1) < 0)
		return;
}

static bool enter_screen(void)
{
	struct termios raw;
	static const char sequence[] = "\033[?1049h\033[?25l";

	if (tcgetattr(STDIN_FILENO, &usual) != 0)
		return false;
	raw = usual;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
	is_raw = true;
	atexit(leave_screen); /* also when this command dies of an error */
	sigaction(SIGWINCH, &(struct sigaction){ .sa_handler = on_resize }, NULL);
	sigaction(SIGINT, &(struct sigaction){ .sa_handler = on_end }, NULL);
	sigaction(SIGTERM, &(struct sigaction){ .sa_handler = on_end }, NULL);
	return write(STDOUT_FILENO, sequence, sizeof sequence - 1) > 0;
}

static void measure_screen(struct top *t)
{
	struct winsize size = { .ws_col = 0 };
	bool known = t->screen && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;

	t->width = known ? size.ws_col : t->screen ? 80 : WIDTH_MAX;
	t->height = known ? size.ws_row : t->screen ? 24 : ONCE_LINES;
	t->width = t->width < WIDTH_MIN ? WIDTH_MIN : t->width > WIDTH_MAX ? WIDTH_MAX : t->width;
}

/* A line, cut to the width of the screen. A byte is a column: names are not, if they have other letters, and then the line is shorter. */
__attribute__((format(printf, 3, 4))) static void say(struct top *t, const char *style, const char *format, ...)
{
	char text[WIDTH_MAX + 1];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, (size_t)t->width + 1, format, arguments);
	va_end(arguments);
	size_t n = strlen(text);
	while (n > 0 && n == t->width && (signed char)text[n - 1] < 0)
		text[--n] = 0; /* not half a letter */
	if (t->screen)
		fprintf(t->out, "%s%s\033[K%s\r\n", style, text, style[0] != 0 ? "\033[0m" : "");
	else
		fprintf(t->out, "%s\n", text);
}

/* ---- figures ---- */

static int64_t cpu_of(const struct census *c, const struct row *r)
{
	int64_t turn = r->state == HD_RUNNING ? age_of(c, r) : 0;
	return r->cpu_time > 0 && r->cpu_time < INT64_MAX - turn ? r->cpu_time + turn : turn;
}

static int64_t idle_of(const struct census *c, uint32_t i)
{
	int64_t idle = (int64_t)census_number(c, (int)i, HD__INSIDE_WORKER_IDLE);

	return idle < 0 ? idle + c->now : idle; /* see struct hd_worker */
}

static int64_t messages_of(const struct census *c)
{
	int64_t n = 0;

	for (uint32_t i = 0; i < c->nworkers; i++)
		n += (int64_t)census_number(c, (int)i, HD__INSIDE_WORKER_LETTERS);
	return n > 0 ? n : 0;
}

/* What a process has run since the last look; both are in the order of slots. */
static double share_of(const struct top *t, const struct row *r, uint32_t *at)
{
	const struct before *b = &t->before;
	int64_t then = 0, passed = t->census.now - b->at, ran;

	while (*at < b->count && ((uint32_t)b->rows[*at].pid & (HD__SLOTS - 1)) < r->slot)
		++*at;
	if (*at < b->count && b->rows[*at].pid == r->pid)
		then = b->rows[*at].cpu;
	ran = cpu_of(&t->census, r) - then;
	double share = passed > 0 && ran > 0 ? (double)ran / (double)passed : 0;
	return share > 1 ? 1 : share;
}

static void remember(struct top *t)
{
	struct before *b = &t->before;
	const struct census *c = &t->census;
	int64_t messages = messages_of(c);

	b->rows = need(realloc(b->rows, (c->count + 1) * sizeof *b->rows));
	b->count = c->count;
	for (uint32_t i = 0; i < c->count; i++) {
		b->rows[i].pid = c->rows[i].pid;
		b->rows[i].cpu = cpu_of(c, &c->rows[i]);
	}
	for (uint32_t i = 0; i < c->nworkers; i++) {
		b->idle[i] = idle_of(c, i);
		b->switches[i] = c->workers[i].switches;
	}
	b->grows = messages > b->messages ? b->grows + 1 : 0;
	b->messages = messages;
	b->at = c->now;
}

/* False: the program has ended, or its runtime has. */
static bool look(struct top *t)
{
	char why[256];
	const struct copy *copy = t->target.censuses[0].copy;
	struct census c;

	for (int tries = 0; tries < 3; tries++)
		if (census_take(&c, &t->target.memory, copy, why, sizeof why)) {
			census_drop(&t->census);
			t->census = c;
			census_measure_stacks(&t->census);
			return true;
		}
	return false;
}

/* ---- warnings ---- */

struct warnings {
	struct top *t;
	unsigned n, left_out;
};

__attribute__((format(printf, 2, 3))) static void warn(struct warnings *w, const char *format, ...)
{
	char text[WIDTH_MAX];
	va_list arguments;

	if (w->n >= WARNINGS_MAX || w->n + 8 > w->t->height) {
		w->left_out++;
		return;
	}
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	say(w->t, "\033[1m", "! %s", text);
	w->n++;
}

/* Whether a thread sleeps in the kernel; so does one that has to wait for a CPU not. */
static bool is_blocked(pid_t pid, int64_t thread)
{
	char path[64], text[512] = "";

	snprintf(path, sizeof path, "/proc/%d/task/%" PRId64 "/stat", (int)pid, thread);
	FILE *f = fopen(path, "re");
	if (f == NULL)
		return false;
	size_t n = fread(text, 1, sizeof text - 1, f);
	fclose(f);
	text[n] = 0;
	const char *state = strrchr(text, ')');
	return state != NULL && state[1] == ' ' && (state[2] == 'S' || state[2] == 'D');
}

static void warn_of_workers(struct warnings *w)
{
	const struct census *c = &w->t->census;
	char text[32], name[WHO_SIZE];

	for (uint32_t i = 0; i < c->nworkers; i++) {
		const struct row *r = census_find(c, c->workers[i].running);
		if (r == NULL || r->state != HD_RUNNING || age_of(c, r) < HOG)
			continue;
		bool blocked = is_blocked(c->m->pid, (int64_t)census_number(c, (int)i, HD__INSIDE_WORKER_THREAD));
		warn(w, "worker %" PRIu32 " %s: %s has run for %s without giving way; %" PRIu32 " ready behind it", i,
		     blocked ? "is blocked in the kernel" : "has a hog", who(c, r->pid, name), span(0, age_of(c, r), text),
		     c->workers[i].ready);
	}
}

static void warn_of_processes(struct warnings *w)
{
	const struct census *c = &w->t->census;
	char text[32], name[WHO_SIZE];
	uint32_t starved[HD__PRIORITY_MAX + 1] = { 0 };
	int64_t longest[HD__PRIORITY_MAX + 1] = { 0 };

	for (uint32_t i = 0; i < c->count; i++) {
		const struct row *r = &c->rows[i];
		unsigned priority = r->lent > r->own ? r->lent : r->own;
		if (r->state == HD_READY && age_of(c, r) >= STARVED && priority <= HD__PRIORITY_MAX) {
			starved[priority]++;
			longest[priority] = age_of(c, r) > longest[priority] ? age_of(c, r) : longest[priority];
		}
	}
	for (int i = HD__PRIORITY_MAX; i >= 0; i--)
		if (starved[i] > 0)
			warn(w, "priority %d starves: %" PRIu32 " ready, for %s", i, starved[i], span(0, longest[i], text));
	for (uint32_t i = 0; i < c->count; i++) {
		const struct row *r = &c->rows[i];
		uint64_t size = UINT64_C(1) << r->stack_class;
		if (r->stack != 0 && r->state != HD_ENDED && r->stack_used > size / 5 * 4)
			warn(w, "%s has used %" PRIu64 " of its stack's %" PRIu64 " KiB", who(c, r->pid, name),
			     r->stack_used >> 10, size >> 10);
	}
	if (w->t->before.grows >= GROWS)
		warn(w, "there are more messages at each look: %" PRId64 " now", messages_of(c));
}

/* ---- the table ---- */

static enum key order;

static int compare(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	if (order == BY_CPU && x->share != y->share)
		return x->share > y->share ? -1 : 1;
	if (order == BY_WAIT && (x->row->state == HD_WAITING) != (y->row->state == HD_WAITING))
		return x->row->state == HD_WAITING ? -1 : 1;
	if (order == BY_WAIT && x->row->since != y->row->since)
		return x->row->since < y->row->since ? -1 : 1;
	if (order == BY_QUEUE && x->row->waiters != y->row->waiters)
		return x->row->waiters > y->row->waiters ? -1 : 1;
	return x->row->slot < y->row->slot ? -1 : x->row->slot > y->row->slot;
}

static void gather(struct top *t)
{
	const struct census *c = &t->census;
	uint32_t at = 0;

	t->lines = need(realloc(t->lines, (c->count + 1) * sizeof *t->lines));
	for (uint32_t i = 0; i < c->count; i++)
		t->lines[i] = (struct line){ &c->rows[i], share_of(t, &c->rows[i], &at) };
	t->count = c->count;
	order = t->key;
	qsort(t->lines, t->count, sizeof *t->lines, compare);
}

static void print_line(struct top *t, const struct line *l)
{
	const struct census *c = &t->census;
	const struct row *r = l->row;
	char id[WHO_SIZE], object[WHO_SIZE] = "", holder[WHO_SIZE], since[32], worker[16] = "-", doing[3 * WHO_SIZE] = "";
	uint64_t size = UINT64_C(1) << r->stack_class;

	if (r->worker >= 0)
		snprintf(worker, sizeof worker, "%d%s", (int)r->worker, r->pinned ? "p" : "");
	if (r->state == HD_WAITING) {
		object_of(c, r, object);
		snprintf(doing, sizeof doing, "%s%s%s%s%s", call_of(c, r), object[0] != 0 ? ", " : "", object,
			 r->holder != 0 ? ", for " : "", r->holder != 0 ? who(c, r->holder, holder) : "");
	}
	say(t, r->state == HD_RUNNING ? "\033[1m" : "", "%-9s %-16.16s %-9s %4u %3s %5.1f %12s %7" PRIu32 " %4u%%  %s",
	    id_of(r->pid, id), r->name[0] != 0 ? r->name : "-", state_of(r), r->lent > r->own ? r->lent : r->own, worker,
	    100 * l->share, span(r->since, c->now, since), r->waiters,
	    r->stack != 0 ? (unsigned)(100 * r->stack_used / size) : 0, doing);
}

static void print_workers(struct top *t)
{
	const struct census *c = &t->census;
	uint32_t most = t->screen ? t->height / 4 + 1 : c->nworkers;
	int64_t passed = c->now - t->before.at;

	for (uint32_t i = 0; i < c->nworkers && i < most; i++) {
		int64_t busy = passed - (idle_of(c, i) - t->before.idle[i]);
		double load = passed > 0 ? (double)busy / (double)passed : 0;
		load = load < 0 ? 0 : load > 1 ? 1 : load;
		char bar[21], name[WHO_SIZE] = "";
		for (unsigned k = 0; k < 20; k++)
			bar[k] = k < (unsigned)(20 * load + 0.5) ? '#' : '.';
		bar[20] = 0;
		if (c->workers[i].running != 0)
			who(c, c->workers[i].running, name);
		double switches =
			passed > 0 ? (double)(c->workers[i].switches - t->before.switches[i]) * 1e9 / (double)passed : 0;
		say(t, "", "worker %-3" PRIu32 " %s %3.0f %% busy %9.0f switches/s %6" PRIu32 " ready  %s", i, bar, 100 * load,
		    switches, c->workers[i].ready, c->workers[i].asleep ? "asleep" : name);
	}
	if (c->nworkers > most)
		say(t, "", "and %" PRIu32 " workers more", c->nworkers - most);
}

static unsigned lines_so_far(struct top *t)
{
	unsigned n = 0;

	fflush(t->out);
	for (const char *s = t->text; s != NULL && (s = strchr(s, '\n')) != NULL; s++)
		n++;
	return n;
}

static void draw(struct top *t, const char *note)
{
	static const char *const keys[] = { "CPU", "wait", "queue" };
	const struct census *c = &t->census;
	struct warnings w = { .t = t };
	uint64_t states[HD_ENDED + 1] = { 0 };

	t->out = need(open_memstream(&t->text, &t->size));
	gather(t);
	if (t->screen)
		fprintf(t->out, "\033[H");
	for (uint32_t i = 0; i < c->count; i++)
		states[c->rows[i].state]++;
	say(t, "",
	    "%s: %" PRIu32 " processes: %" PRIu64 " running, %" PRIu64 " ready, %" PRIu64 " waiting, %" PRIu64
	    " suspended; %" PRId64 " messages%s",
	    c->m->name, c->count, states[HD_RUNNING], states[HD_READY], states[HD_WAITING], states[HD_SUSPENDED],
	    messages_of(c), c->stopping ? "; ending" : "");
	warn_of_workers(&w);
	warn_of_processes(&w);
	if (w.left_out > 0)
		say(t, "\033[1m", "! and %u warnings more", w.left_out);
	print_workers(t);
	say(t, "\033[7m", "%-9s %-16s %-9s %4s %3s %5s %12s %7s %5s  %s", "ID", "NAME", "STATE", "PRIO", "WRK", "CPU%", "FOR",
	    "WAITERS", "STACK", "DOING");
	unsigned used = lines_so_far(t) + (t->screen ? 1 : 0), room = t->height > used ? t->height - used : 0;
	for (uint32_t i = 0; i < t->count && i < room; i++)
		print_line(t, &t->lines[i]);
	if (t->screen) /* the last line, without an end: the screen does not move */
		fprintf(t->out, "\033[J%.*s", (int)t->width, note != NULL ? note : "");
	if (t->screen && note == NULL)
		fprintf(t->out, "%.*s", (int)t->width,
			t->key == BY_CPU    ? "sorted by CPU; keys: c CPU, w wait, l queue length, q quit"
			: t->key == BY_WAIT ? "sorted by wait; keys: c CPU, w wait, l queue length, q quit"
					    : "sorted by queue length; keys: c CPU, w wait, l queue length, q quit");
	else if (!t->screen && t->count > room)
		say(t, "", "and %" PRIu32 " processes more, sorted by %s", t->count - room, keys[t->key]);
	fclose(t->out);
	for (size_t done = 0; done < t->size;) {
		ssize_t n = write(STDOUT_FILENO, t->text + done, t->size - done);
		if (n < 0 && errno != EINTR)
			die("cannot write to the terminal: %s", strerror(errno));
		done += n > 0 ? (size_t)n : 0;
	}
	free(t->text);
	t->text = NULL;
}

/* ---- the loop ---- */

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Waits until a time, or for a key. False: the user has had enough. */
static bool wait_for(struct top *t, int64_t until)
{
	struct pollfd keys = { STDIN_FILENO, POLLIN, 0 };

	while (!ended && !resized) {
		int64_t left = until - now();
		if (left <= 0)
			return true;
		int n = poll(&keys, t->screen ? 1 : 0, (int)(left / 1000000) + 1);
		char key = 0;
		if (n <= 0)
			continue;
		if (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q')
			return false;
		enum key before = t->key;
		t->key = key == 'c' ? BY_CPU : key == 'w' ? BY_WAIT : key == 'l' ? BY_QUEUE : before;
		if (t->key != before)
			return true;
	}
	return !ended;
}

static int watch(struct top *t, int64_t delay)
{
	bool there = true;

	while (there && wait_for(t, now() + delay)) {
		if (resized) {
			resized = 0;
			measure_screen(t);
			if (write(STDOUT_FILENO, "\033[2J", 4) < 0)
				break;
			draw(t, NULL);
			continue;
		}
		there = look(t);
		if (there) {
			draw(t, NULL);
			remember(t);
		}
	}
	leave_screen();
	if (!there)
		printf("%s has ended\n", t->target.memory.name);
	return 0;
}

int top_main(int argc, char **argv)
{
	static const struct option options[] = { { "once", no_argument, NULL, '1' },
						 { "delay", required_argument, NULL, 'd' },
						 { "sort", required_argument, NULL, 's' },
						 { "help", no_argument, NULL, 'h' },
						 { NULL, 0, NULL, 0 } };
	static const char *const keys[] = { "cpu", "wait", "queue" };
	static struct top t;
	bool once = false, known = true;
	double delay = 1;
	char *end;
	int option;

	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1)
		switch (option) {
		case '1':
			once = true;
			break;
		case 'd':
			delay = strtod(optarg, &end);
			if (end == optarg || *end != 0 || !isfinite(delay) || delay < 0.05 || delay > 3600)
				die("--delay %s: expected seconds, from 0.05 to 3600", optarg);
			break;
		case 's':
			known = false;
			for (int i = 0; i < 3; i++)
				if (strcmp(optarg, keys[i]) == 0) {
					t.key = (enum key)i;
					known = true;
				}
			if (!known)
				die("--sort %s: expected cpu, wait or queue", optarg);
			break;
		case 'h':
			help("top");
			return 0;
		default:
			return 2;
		}
	if (optind + 1 != argc)
		die("which program? `heddle top PID`, or the name of a program; `heddle help top` explains");
	inspect(&t.target, argv[optind], false);
	if (!t.target.memory.live)
		die("%s does not run: `heddle ps` shows what its processes did", t.target.memory.name);
	if (t.target.running > 1)
		fprintf(stderr, "heddle: %s has several runtimes that run: the first is shown\n", t.target.memory.name);
	if (!look(&t))
		die("%s has ended", t.target.memory.name);
	remember(&t);
	int64_t ns = (int64_t)(delay * 1e9);
	if (!once && isatty(STDOUT_FILENO) && isatty(STDIN_FILENO)) {
		t.screen = enter_screen();
		measure_screen(&t);
		draw(&t, NULL);
		return watch(&t, ns);
	}
	measure_screen(&t);
	nanosleep(&(struct timespec){ ns / 1000000000, ns % 1000000000 }, NULL);
	if (!look(&t))
		die("%s has ended", t.target.memory.name);
	draw(&t, NULL);
	return 0;
}
