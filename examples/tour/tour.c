/* tour.c - heddle in nine short programs: each is shown, then run. `make run` runs it.
 *
 *     tour [--small] [CHAPTER...]
 *
 * runs the chapters with these numbers, or all; a small tour, for the tests, has fewer processes and repetitions.
 *
 * On a terminal there are colours and progress bars; into a file goes plain text. Stderr goes where stdout goes, so that
 * heddle's own report of a deadlock stands where it belongs. */
#define _DEFAULT_SOURCE /* dup2, isatty */
#include "chapter.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const struct chapter {
	const char *title, *words, *source;
	int (*run)(void);
} chapters[] = {
	{ "Taking turns",
	  "A process is a function on a stack of its own. hd_yield lets the other processes of the same priority run.",
	  yield_source, chapter_yield },
	{ "Priorities",
	  "From 10 to 80. With one worker, the process with the highest priority that can run does, at once; equals run in the "
	  "order in which they became ready.",
	  priority_source, chapter_priority },
	{ "Waiting",
	  "Every call that waits has a deadline. Only the process waits: its kernel thread runs other processes meanwhile.",
	  semaphore_source, chapter_semaphore },
	{ "Many",
	  "A process that waits costs a page of stack and a little more: a million need 4.6 GB, and Linux 6.13 or a higher "
	  "vm.max_map_count.",
	  many_source, chapter_many },
	{ "A server",
	  "A process for each connection, which reads and writes in straight lines. A call that waits for a socket lets other "
	  "processes "
	  "run.",
	  echo_source, chapter_echo },
	{ "Supervision",
	  "A supervisor starts its children again when they fail; if that happens too often, it fails in its turn.",
	  supervisor_source, chapter_supervisor },
	{ "A bank",
	  "A behaviour is a function that runs when all that it uses is its own. hd_when makes one and does not wait. No lock, "
	  "no data "
	  "race, no deadlock; behaviours with an account in common run in the order of their calls, others on all workers at "
	  "once.",
	  bank_source, chapter_bank },
	{ "Deadlock", "When no process can ever run again, heddle says what each of them waits for, and hd_run returns.",
	  deadlock_source, chapter_deadlock },
	{ "What it costs here", "On one worker, measured now: the best of five runs.", numbers_source, chapter_numbers },
};

static bool terminal, small;

static const char *style(const char *escape)
{
	return terminal ? escape : "";
}

#define BOLD style("\033[1m")
#define DIM style("\033[2m")
#define PLAIN style("\033[0m")

void progress(const char *what, long done, long total)
{
	static const char full[] = "########################################";
	const int width = (int)sizeof full - 1;

	if (!terminal)
		return;
	if (what == NULL) {
		printf("\r\033[K");
		return;
	}
	printf("\r  %-10s [%-*.*s] %s", what, width, (int)(width * done / total), full, thousands(done));
	fflush(stdout);
}

const char *thousands(long n)
{
	static char buffers[4][32];
	static int turn;
	char digits[32], *out = buffers[turn++ % 4], *p = out;
	int count = snprintf(digits, sizeof digits, "%ld", n);

	for (int i = 0; i < count; i++) {
		*p++ = digits[i];
		if (digits[i] != '-' && i + 1 < count && (count - i - 1) % 3 == 0)
			*p++ = ',';
	}
	*p = '\0';
	return out;
}

/* The number behind `key` in a file of "key: n kB" lines; 0 when it is not there. */
static long kilobytes(const char *path, const char *key)
{
	char line[256];
	long value = 0;
	FILE *f = fopen(path, "r");

	if (f == NULL)
		return 0;
	while (fgets(line, sizeof line, f) != NULL)
		if (strncmp(line, key, strlen(key)) == 0 && sscanf(line + strlen(key), ": %ld", &value) == 1)
			break;
	fclose(f);
	return value;
}

long memory_used(void)
{
	return 1024 * (kilobytes("/proc/self/status", "VmRSS") + kilobytes("/proc/self/status", "VmPTE"));
}

long how_many(void)
{
	const long million = 1000000, each = 6; /* kB, on the safe side */

	if (small)
		return 200;
	long room = kilobytes("/proc/meminfo", "MemAvailable") / 2 / each;

	if (room >= million)
		return million;
	printf("  (this machine has free memory for %s, not for a million)\n", thousands(room));
	return room > 1000 ? room : 1000;
}

long how_many_clients(void)
{
	struct rlimit limit;
	long wanted = small ? 100 : 1000, own = 100; /* descriptors of other kinds */

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= (rlim_t)(2 * wanted + own))
		return wanted;
	long room = ((long)limit.rlim_cur - own) / 2; /* a connection has two ends, and both are here */
	if (room < 1)
		room = 1;
	printf("  (this program may have %ld descriptors: enough for %s clients, not for %s)\n", (long)limit.rlim_cur,
	       thousands(room), thousands(wanted));
	return room;
}

long repetitions(long n)
{
	return small ? n / 1000 : n;
}

static void show_source(const char *source)
{
	for (const char *line = source; *line != '\0';) {
		const char *end = strchr(line, '\n'), *text = line + strspn(line, "\t");
		printf("%s    | %*s%.*s%s\n", DIM, 4 * (int)(text - line), "", (int)(end - text), text, PLAIN);
		line = end + 1;
	}
	printf("\n");
}

/* Whether the chapter with this number is to be run: it is among the arguments, or there are none. */
static bool is_wanted(int number, char **arguments)
{
	if (*arguments == NULL)
		return true;
	for (; *arguments != NULL; arguments++)
		if (atoi(*arguments) == number)
			return true;
	return false;
}

int main(int argc, char **argv)
{
	const int count = (int)(sizeof chapters / sizeof chapters[0]);

	small = argc > 1 && strcmp(argv[1], "--small") == 0;
	terminal = isatty(STDOUT_FILENO);
	setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
	dup2(STDOUT_FILENO, STDERR_FILENO);

	int failed = 0;
	hd_time start = hd_now();
	printf("%sheddle: lightweight processes for C%s\n", BOLD, PLAIN);
	for (int i = 0; i < count; i++) {
		const struct chapter *c = &chapters[i];
		if (!is_wanted(i + 1, argv + 1 + small))
			continue;
		printf("\n%s%d. %s%s\n%s\n\n", BOLD, i + 1, c->title, PLAIN, c->words);
		show_source(c->source);
		if (c->run() != 0) {
			printf("This chapter has failed: please report it.\n");
			failed = 1;
		}
	}
	printf("\nThat took %.1f s. The programs are in examples/tour; README.md says where to go from here.\n",
	       (double)(hd_now() - start) / 1e9);
	return failed;
}
