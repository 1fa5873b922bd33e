/* subject.c - the program that is explored. */
#define _GNU_SOURCE
#include "subject.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "home.h"
#include "say.h"

#define OUTPUT_MAX 4096

static struct hd__sim_page *make_page(int *fd)
{
	*fd = memfd_create("heddle-page", MFD_CLOEXEC);
	if (*fd < 0 || ftruncate(*fd, sizeof(struct hd__sim_page)) != 0)
		die("no memory to share with the program: %s", strerror(errno));
	struct hd__sim_page *page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	if (page == MAP_FAILED)
		die("no memory to share with the program: %s", strerror(errno));
	page->version = HD__SIM_VERSION;
	page->patience = PATIENCE_MS;
	return page;
}

/* One more library that the program's loader loads first. */
static void load_before(const char *library)
{
	const char *others = getenv("LD_PRELOAD");
	char *all;

	if (access(library, R_OK) != 0)
		die("%s, which --fail malloc needs: %s", library, strerror(errno));
	if (asprintf(&all, "%s%s%s", library, others != NULL ? ":" : "", others != NULL ? others : "") < 0)
		die("no memory");
	setenv("LD_PRELOAD", all, 1);
}

/* In the child. Descriptors that are named in `how` stay open. */
_Noreturn static void become(char **argv, const char *how, unsigned faults, const int *keep, int n)
{
	for (int i = 0; i < n; i++)
		fcntl(keep[i], F_SETFD, 0);
	signal(SIGPIPE, SIG_DFL);
	setenv("HEDDLE_SIM", how, 1);
	if (faults & HD__SIM_FAIL_MALLOC)
		load_before(find_home()->malloc);
	setenv("LD_BIND_NOW", "1", 0); /* what the loader has done before the first run, it need not do in each */
	execvp(argv[0], argv);
	fprintf(stderr, "heddle: %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

void subject_start(struct subject *s, char **argv, unsigned faults)
{
	int mem, to[2], from[2];
	char how[64];

	*s = (struct subject){ .page = make_page(&mem), .output = memfd_create("heddle-output", MFD_CLOEXEC) };
	if (s->output < 0 || pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
		die("no pipe to the program: %s", strerror(errno));
	s->pid = fork();
	if (s->pid < 0)
		die("no process for the program: %s", strerror(errno));
	if (s->pid == 0) {
		snprintf(how, sizeof how, "serve %d %d %d %d", mem, to[0], from[1], s->output);
		become(argv, how, faults, (const int[]){ mem, to[0], from[1], s->output }, 4);
	}
	close(mem);
	close(to[0]);
	close(from[1]);
	s->command = to[1];
	s->answer = from[0];
}

void subject_stop(struct subject *s)
{
	if (s->pid > 0) {
		kill(s->pid, SIGKILL);
		waitpid(s->pid, NULL, 0);
		close(s->command);
		close(s->answer);
	}
	close(s->output);
	munmap(s->page, sizeof *s->page);
	*s = (struct subject){ .pid = 0 };
}

void copy_plan(struct hd__sim_plan *to, const struct hd__sim_plan *from)
{
	memcpy(to, from, offsetof(struct hd__sim_plan, list) + from->unusual * sizeof from->list[0]);
}

void subject_go(struct subject *s, unsigned count, double seconds)
{
	s->page->time_left = seconds > 0 ? 1 + (uint32_t)(seconds * 1000) : 0;
	s->page->count = count;
	s->page->done = 0;
	s->busy = write(s->command, "", 1) == 1; /* else it has gone, which subject_wait will see */
	if (!s->busy)
		subject_wait(s);
}

/* It did not come to hd_run, or did not come back from it. */
_Noreturn static void gone(struct subject *s)
{
	int status = 0;

	waitpid(s->pid, &status, 0);
	if (s->page->result.verdict == HD__SIM_FOREIGN)
		die(HD__SIM_FOREIGN_TEXT);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		exit(2); /* it has said why */
	if (WIFEXITED(status))
		die("the program ended with status %d before it called hd_run, or it is not linked with heddle",
		    WEXITSTATUS(status));
	die("the program was ended by signal %d (%s) before it called hd_run", WTERMSIG(status), strsignal(WTERMSIG(status)));
}

void subject_wait(struct subject *s)
{
	char byte;
	ssize_t n;

	while ((n = read(s->answer, &byte, 1)) < 0 && errno == EINTR)
		;
	if (n != 1)
		gone(s);
	s->busy = false;
}

enum hd__sim_verdict subject_run(struct subject *s, const struct hd__sim_plan *plan)
{
	copy_plan(&s->page->plan, plan);
	subject_go(s, 1, 0);
	subject_wait(s);
	return s->page->result.verdict;
}

int subject_replay(const struct hd__sim_plan *plan, char **argv, bool gdb, struct subject *s)
{
	int mem, status;
	char how[32];

	*s = (struct subject){ .page = make_page(&mem), .output = -1 };
	copy_plan(&s->page->plan, plan);
	s->page->tell = true;
	fflush(NULL);
	pid_t child = fork();
	if (child < 0)
		die("no process for the program: %s", strerror(errno));
	if (child == 0) {
		snprintf(how, sizeof how, "run %d", mem);
		if (!gdb)
			become(argv, how, plan->faults, &mem, 1);
		int n = 0;
		while (argv[n] != NULL)
			n++;
		char **debug = calloc((size_t)n + 4, sizeof *debug);
		if (debug == NULL)
			_exit(2);
		memcpy(debug, (char *[]){ (char *)"gdb", (char *)"--args" }, 2 * sizeof *debug);
		memcpy(debug + 2, argv, (size_t)n * sizeof *argv);
		become(debug, how, plan->faults, &mem, 1);
	}
	close(mem);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			die("the program was lost: %s", strerror(errno));
	return status;
}

void subject_print_output(struct subject *s, const char *before)
{
	char text[OUTPUT_MAX + 1];
	off_t size = lseek(s->output, 0, SEEK_END), from = size > OUTPUT_MAX ? size - OUTPUT_MAX : 0;
	ssize_t n = pread(s->output, text, OUTPUT_MAX, from);

	if (n <= 0)
		return;
	text[n] = 0;
	if (from > 0)
		printf("%s(the last %d bytes of what it printed)\n", before, OUTPUT_MAX);
	for (char *line = text, *next; line < text + n; line = next) {
		next = strchrnul(line, '\n');
		printf("%s%.*s\n", before, (int)(next - line), line);
		next++;
	}
}
