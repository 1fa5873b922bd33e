/* sim/server.c - one process for each run, so that nothing of a run is left for the next, and a crash ends only one.
 *
 * Owns:       HEDDLE_SIM, which is one of
 *               serve MEM COMMAND ANSWER OUTPUT   file descriptors: the page, two pipes, a file for what runs print. For each
 *                                                 byte that comes the page's plan is run, and answered with a byte.
 *               run MEM                           the page's plan is run once, here
 *               PLAN                              that plan, here, as text
 * Callers:    hd_run. */
#define _GNU_SOURCE
#include "sim/server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/variable.h"
#include "os/thread.h"
#include "sim/choice.h"
#include "sim/sim.h"
#include "sim/threads.h"

#define TICK_MS 100 /* at which a run is looked at that takes its time */

struct hd__sim_page *hd__sim_page;
bool hd__sim_threads;

static enum { UNKNOWN, OFF, ON, SERVING, SERVED } mode; /* relaxed: what it becomes depends on nothing but the environment */

static struct {
	int command, answer, output;
} s;

/* The page of an explorer. */
static struct hd__sim_page *attach(int fd)
{
	void *page = mmap(NULL, sizeof(struct hd__sim_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (page == MAP_FAILED || ((struct hd__sim_page *)page)->version != HD__SIM_VERSION) {
		hd__complain("heddle: HEDDLE_SIM does not come from a `heddle` command of this version\n");
		_exit(127); /* the explorer says no more */
	}
	close(fd);
	return page;
}

/* Nothing of the run before is in the page. */
static void clear(struct hd__sim_page *page)
{
	page->result = (struct hd__sim_result){ .hash = 0 };
	page->events = 0;
}

/* How it ended, when the process has. */
static void judge(struct hd__sim_result *result, int status)
{
	result->status = status;
	if (result->verdict != HD__SIM_UNDECIDED && result->verdict != HD__SIM_FINE)
		return;
	if (WIFSIGNALED(status))
		result->verdict = HD__SIM_CRASH;
	else
		result->verdict = WEXITSTATUS(status) == 0 ? HD__SIM_FINE : HD__SIM_STATUS;
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool has_threads(pid_t pid)
{
	char name[64];
	struct stat tasks;

	snprintf(name, sizeof name, "/proc/%d/task", (int)pid);
	return stat(name, &tasks) == 0 && tasks.st_nlink > 3; /* one link for each, one from itself, one from above */
}

/* Looks at a run until it is over. One that makes no step for page->patience hangs: it computes, waits outside heddle, or waits for a thread of
 * its own. One that makes steps when the time of the batch is up, at `until`, is only slow. */
static void watch(struct hd__sim_page *page, pid_t child, int fd, int64_t until)
{
	struct hd__sim_result *result = &page->result;
	struct pollfd ended = { .fd = fd, .events = POLLIN };
	int64_t since = now_ms();
	uint32_t steps = 0;
	int n;

	while ((n = poll(&ended, 1, TICK_MS)) == 0 || (n < 0 && errno == EINTR)) {
		int64_t now = now_ms();
		uint32_t made = *(volatile uint32_t *)&result->steps; /* the run's, in the shared page */
		if (made != steps)
			since = now;
		steps = made;
		page->late = now >= until && since == now;
		if (now - since < page->patience && !page->late)
			continue;
		result->verdict = page->late ? HD__SIM_NOT_OVER : has_threads(child) ? HD__SIM_FOREIGN : HD__SIM_HANG;
		kill(child, SIGKILL);
		return;
	}
}

static int wait_for(struct hd__sim_page *page, pid_t child, int64_t until)
{
	int status, fd = (int)syscall(SYS_pidfd_open, child, 0);

	if (fd >= 0) {
		watch(page, child, fd, until);
		close(fd);
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return 0;
	return status;
}

/* In the child: what it prints goes to a file of the explorer's. */
static void redirect(int output)
{
	if (ftruncate(output, 0) == 0)
		lseek(output, 0, SEEK_SET);
	dup2(output, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
}

/* A batch of runs. Returns true in a child, once for each. */
static bool serve_batch(struct hd__sim_page *page, int output)
{
	uint64_t seed = page->plan.seed;
	int64_t until = page->time_left > 0 ? now_ms() + page->time_left : INT64_MAX;

	page->longest = page->not_over = 0;
	page->could_be_late = page->late = false;
	for (page->done = 0; page->done < page->count && !page->late;) {
		page->plan.seed = seed + page->done;
		clear(page);
		pid_t child = fork();
		if (child < 0) {
			hd__complain("heddle: no process for a run: %s\n", strerror(errno));
			_exit(2);
		}
		if (child == 0) {
			redirect(output);
			hd__sim_choice_begin(page);
			return true;
		}
		judge(&page->result, wait_for(page, child, until));
		page->hashes[page->done++] = page->result.hash;
		page->could_be_late |= page->result.could_be_late;
		if (page->result.verdict == HD__SIM_NOT_OVER) {
			if (page->not_over++ == 0)
				page->not_over_seed = page->plan.seed;
			continue;
		}
		if (page->result.steps > page->longest)
			page->longest = page->result.steps;
		if (page->result.verdict != HD__SIM_FINE)
			break;
		page->late = now_ms() >= until;
	}
	return false;
}

void hd__sim_serve(void)
{
	char byte;

	if (mode != SERVING)
		return;
	fflush(NULL);			       /* or each child prints it too */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* a run is too short to be worth the clearing of a huge page */
	for (;;) {
		ssize_t n = read(s.command, &byte, 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(0); /* the explorer has gone */
		if (serve_batch(hd__sim_page, s.output)) {
			close(s.command);
			close(s.answer);
			mode = SERVED;
			return;
		}
		if (write(s.answer, "", 1) != 1)
			_exit(0);
	}
}

static void begin(const char *how)
{
	bool threads = hd__os_thread_count() > 1;
	int mem;

	if (sscanf(how, "serve %d %d %d %d", &mem, &s.command, &s.answer, &s.output) == 4) {
		hd__sim_page = attach(mem);
		if (threads) {
			hd__sim_page->result.verdict = HD__SIM_FOREIGN; /* the explorer says so */
			_exit(2);
		}
		mode = SERVING;
		return;
	}
	if (threads) {
		hd__complain("heddle: simulation: " HD__SIM_FOREIGN_TEXT "\n");
		_exit(2);
	}
	mode = ON;
	if (sscanf(how, "run %d", &mem) == 1) {
		hd__sim_page = attach(mem);
	} else {
		hd__sim_page = mmap(NULL, sizeof *hd__sim_page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (hd__sim_page == MAP_FAILED || !hd__sim_parse(&hd__sim_page->plan, how)) {
			hd__complain("heddle: HEDDLE_SIM=%s: not a plan; `heddle help replay` explains them\n", how);
			_exit(2);
		}
	}
	clear(hd__sim_page);
	hd__sim_choice_begin(hd__sim_page);
}

/* A time that main asks for before hd_run must mean the same in the run. */
__attribute__((constructor)) static void begin_time(void)
{
	if (hd__variable("HEDDLE_SIM") != NULL)
		hd__plain_clock = &hd__sim_clock;
}

bool hd__sim_begin(void)
{
	if (ld_rlx(&mode) == UNKNOWN) { /* any thread may be the first to call hd_run; if it is simulated there is one */
		const char *how = hd__variable("HEDDLE_SIM");
		int saved = errno;
		if (how != NULL)
			begin(how);
		else
			st_rlx(&mode, OFF);
		errno = saved;
	}
	return ld_rlx(&mode) != OFF;
}

bool hd__sim_is_served(void)
{
	return mode == SERVED;
}

void (*hd__sim_leaves)(void);

void hd__sim_leave(void)
{
	static const char *const why[] = {
		[HD__SIM_DEADLOCK] = "deadlock",
		[HD__SIM_LIVELOCK] = "livelock: it goes in a circle",
		[HD__SIM_NOT_OVER] = "not over after so many steps",
		[HD__SIM_FOREIGN] = HD__SIM_FOREIGN_TEXT,
		[HD__SIM_ASTRAY] = "the plan was made for another program: it names a choice that there is not",
	};

	if (hd__sim_leaves != NULL)
		hd__sim_leaves();
	if (mode == SERVED)
		_exit(0);
	hd__complain("heddle: simulation: %s\n", why[hd__sim_page->result.verdict]);
	abort(); /* a debugger stops here */
}
