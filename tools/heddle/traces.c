/* traces.c - the child that unwinds, and what it tells.
 *
 * Owns:       struct traces.
 * Invariant:  the child can do no harm: it has limits of memory and of time, each record that it writes is checked, and if it dies, or writes what makes no
 *             sense, what came before is kept, and struct traces says why there is no more. */
#define _GNU_SOURCE
#include "traces.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "say.h"

#define MEMORY ((rlim_t)4 << 30) /* bytes that the child may need, beside what it begins with */
#define SECONDS 120		 /* of CPU time */
#define PLACES_LIMIT (1u << 22)
#define TEXT_LIMIT (1u << 30)
#define FRAMES_LIMIT 4096

/* ---- records ---- */

static void *more(void *list, uint32_t n, size_t size)
{
	return (n & (n + 1)) == 0 ? need(realloc(list, (2 * (size_t)n + 2) * size)) : list;
}

static bool take_stack(struct traces *t, const unsigned char *bytes, size_t size)
{
	uint32_t head[2];
	uint64_t address;

	if (size < sizeof head)
		return false;
	memcpy(head, bytes, sizeof head);
	if (head[0] == 0 || head[0] > FRAMES_LIMIT || size != sizeof head + head[0] * sizeof address || t->count >= NOT_FOUND ||
	    t->address_count > UINT32_MAX - FRAMES_LIMIT)
		return false;
	t->list = more(t->list, t->count, sizeof *t->list);
	t->list[t->count++] = (struct trace){ t->address_count, head[0], head[1] != 0 };
	for (uint32_t i = 0; i < head[0]; i++) {
		memcpy(&address, bytes + sizeof head + i * sizeof address, sizeof address);
		t->address = more(t->address, t->address_count, sizeof *t->address);
		t->address[t->address_count++] = address;
	}
	return true;
}

static bool take_rows(struct traces *t, const unsigned char *bytes, size_t size)
{
	uint32_t head[2], stack;

	if (size < sizeof head)
		return false;
	memcpy(head, bytes, sizeof head);
	if (head[0] > t->of_count || head[1] > t->of_count - head[0] || size != sizeof head + head[1] * sizeof stack)
		return false;
	for (uint32_t i = 0; i < head[1]; i++) {
		memcpy(&stack, bytes + sizeof head + i * sizeof stack, sizeof stack);
		if (stack >= t->count && stack != NOT_WALKED && stack != NOT_FOUND)
			return false;
		t->of[head[0] + i] = stack;
	}
	return true;
}

static bool take_place(struct traces *t, const unsigned char *bytes, size_t size)
{
	struct {
		uint64_t address;
		uint32_t index, line, inlined, zero;
	} head;

	if (size < sizeof head + 2 || t->place_count >= PLACES_LIMIT)
		return false;
	memcpy(&head, bytes, sizeof head);
	const char *text = (const char *)bytes + sizeof head, *end = (const char *)bytes + size;
	const char *zero = memchr(text, 0, (size_t)(end - text));
	if (zero == NULL || zero + 1 == end || memchr(zero + 1, 0, (size_t)(end - zero - 1)) != end - 1)
		return false;
	char *copy = need(malloc((size_t)(end - text)));
	memcpy(copy, text, (size_t)(end - text));
	for (char *s = copy; s < copy + (end - text); s++)
		if ((*s > 0 && *s < ' ') || *s == 0x7f) /* what is no text for a terminal */
			*s = '?';
	t->places = more(t->places, t->place_count, sizeof *t->places);
	t->places[t->place_count++] =
		(struct place){ head.address, head.index, head.line, head.inlined != 0, copy, copy + (zero + 1 - text) };
	return true;
}

bool traces_take_record(struct traces *t, const struct record_head *head, const unsigned char *bytes)
{
	switch (head->kind) {
	case RECORD_STACK:
		return take_stack(t, bytes, head->size);
	case RECORD_ROWS:
		return take_rows(t, bytes, head->size);
	case RECORD_PLACE:
		return take_place(t, bytes, head->size);
	case RECORD_WARNING:
		fprintf(stderr, "heddle: warning: %.*s\n", (int)head->size, (const char *)bytes);
		return true;
	case RECORD_DONE:
		return head->size == sizeof t->unwound && memcpy(&t->unwound, bytes, sizeof t->unwound) != NULL;
	default:
		return false;
	}
}

static int by_address(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

void traces_sort(struct traces *t)
{
	if (t->place_count > 0)
		qsort(t->places, t->place_count, sizeof *t->places, by_address);
}

const struct place *traces_places(const struct traces *t, uint64_t address, uint32_t *n)
{
	uint32_t low = 0, high = t->place_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (t->places[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	for (*n = 0; low + *n < t->place_count && t->places[low + *n].address == address;)
		++*n;
	return *n > 0 ? &t->places[low] : NULL;
}

void traces_drop(struct traces *t)
{
	for (uint32_t i = 0; i < t->place_count; i++)
		free(t->places[i].function);
	free(t->places);
	free(t->address);
	free(t->list);
	free(t->of);
	*t = (struct traces){ 0 };
}

/* ---- the child ---- */

/* What this process has in use, as the kernel counts it for RLIMIT_AS. */
static rlim_t in_use(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f != NULL) {
		if (fscanf(f, "%lu", &pages) != 1)
			pages = 0;
		fclose(f);
	}
	return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static void limit(int what, rlim_t most)
{
	struct rlimit l;

	if (getrlimit(what, &l) == 0 && l.rlim_cur > most) {
		l.rlim_cur = most;
		setrlimit(what, &l);
	}
}

static void limit_child(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	limit(RLIMIT_AS, in_use() + MEMORY);
	limit(RLIMIT_CPU, SECONDS);
	limit(RLIMIT_CORE, 0);
	unsetenv("DEBUGINFOD_URLS"); /* nothing is fetched from other machines */
}

struct job {
	const struct wish_of_traces *wish;
	const struct in_file *files;
	uint32_t count;
	const char *root;
};

static pid_t start(const struct job *job, FILE **from)
{
	pid_t parent = getpid();
	int ends[2];

	fflush(NULL);
	if (pipe(ends) != 0)
		die("pipe: %s", strerror(errno));
	pid_t child = fork();
	if (child < 0)
		die("fork: %s", strerror(errno));
	if (child > 0) {
		close(ends[1]);
		*from = need(fdopen(ends[0], "r"));
		return child;
	}
	close(ends[0]);
	limit_child(parent);
	FILE *to = need(fdopen(ends[1], "w"));
	if (job->wish != NULL)
		unwind_program(to, job->wish);
	else
		unwind_files(to, job->files, job->count, job->root);
	_exit(fflush(to) == 0 ? 0 : 1);
}

/* How it has ended, if it was not well. */
static void explain_end(struct traces *t, int status, bool done)
{
	const char *what = "what reads stacks and debug information (libdw)";

	if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL))
		snprintf(t->why, sizeof t->why, "%s was stopped: it had used %d s of CPU time, or too much memory", what,
			 SECONDS);
	else if (WIFSIGNALED(status))
		snprintf(t->why, sizeof t->why, "%s died of signal %d (%s)", what, WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status) != 0)
		snprintf(t->why, sizeof t->why, "%s had not enough memory, or failed otherwise", what);
	else if (!done)
		snprintf(t->why, sizeof t->why, "%s told what makes no sense", what);
}

static void run(struct traces *t, const struct job *job)
{
	FILE *from;
	pid_t child = start(job, &from);
	unsigned char *bytes = need(malloc(RECORD_MAX_SIZE));
	struct record_head head;
	bool done = false;
	int status = 0;

	while (!done && fread(&head, sizeof head, 1, from) == 1) {
		if (head.size > RECORD_MAX_SIZE || fread(bytes, 1, head.size, from) != head.size ||
		    !traces_take_record(t, &head, bytes))
			break;
		done = head.kind == RECORD_DONE;
	}
	fclose(from); /* if it still writes, it ends */
	free(bytes);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (!done)
		explain_end(t, status, done);
	traces_sort(t);
}

void traces_take(struct traces *t, const struct wish_of_traces *wish)
{
	*t = (struct traces){ .of_count = wish->count };
	t->of = need(malloc((wish->count + (size_t)1) * sizeof *t->of));
	for (uint32_t i = 0; i < wish->count; i++)
		t->of[i] = NOT_FOUND;
	run(t, &(struct job){ .wish = wish });
}

void traces_of_files(struct traces *t, const struct in_file *wanted, uint32_t n, const char *root)
{
	*t = (struct traces){ 0 };
	run(t, &(struct job){ .files = wanted, .count = n, .root = root });
}
