/* replay.c - `heddle replay`: repeats one schedule of a program, with its terminal, under gdb if asked. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compile.h"
#include "explore.h"
#include "help.h"
#include "recording.h"
#include "say.h"
#include "story.h"
#include "subject.h"

/* The story needs a process that is still there to look up addresses in: so the plan is run once more, by a server. */
static void tell_again(const struct hd__sim_plan *plan, char **argv)
{
	struct subject s;

	subject_start(&s, argv, plan->faults);
	s.page->tell = true;
	subject_run(&s, plan);
	tell_story(s.page, s.pid);
	subject_stop(&s);
}

/* The program records its run in a file of ours: the times in it are virtual. */
static void begin_recording(char *file)
{
	char variable[64];
	int fd = mkstemp(file);

	if (fd < 0)
		die("no file to record in: %s: %s", file, strerror(errno));
	close(fd);
	snprintf(variable, sizeof variable, "%s:1M", file);
	setenv("HEDDLE_TRACE", variable, 1);
}

static void end_recording(const char *file, const char *timeline)
{
	struct recording r;
	int64_t program;
	bool is_there = recording_open(&r, file, &program);

	unlink(file);
	unsetenv("HEDDLE_TRACE");
	if (!is_there)
		die("the program has recorded nothing: it never called hd_run, or its run was cut off");
	trace_convert(&r, timeline);
	recording_drop(&r);
}

int replay_main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "trace", optional_argument, NULL, 't' },
		{ "gdb", no_argument, NULL, 'g' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	static struct hd__sim_plan plan;
	const char *timeline = NULL;
	char recorded[] = "/tmp/heddle-trace-XXXXXX";
	bool trace = false, gdb = false;
	struct subject s;
	int c;

	while ((c = getopt_long(argc, argv, "+t::gh", options, NULL)) != -1) {
		if (c == 'h') {
			help("replay");
			return 0;
		}
		if (c == '?')
			return 2;
		trace |= c == 't' && optarg == NULL;
		gdb |= c == 'g';
		if (c == 't' && optarg != NULL)
			timeline = optarg;
	}
	if (argv[optind] == NULL || argv[optind + 1] == NULL)
		die("which schedule, of which program? `heddle help replay` explains");
	if (!hd__sim_parse(&plan, argv[optind]))
		die("%s is not a schedule; `heddle help replay` explains them", argv[optind]);
	char **words = compile_first(argv + optind + 1);
	if (timeline != NULL)
		begin_recording(recorded);
	int status = subject_replay(&plan, words, gdb, &s);
	if (timeline != NULL)
		end_recording(recorded, timeline);
	if (gdb)
		return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
	struct hd__sim_result *r = &s.page->result;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127 && r->steps == 0)
		return 2;
	if (r->verdict == HD__SIM_UNDECIDED || r->verdict == HD__SIM_FINE) {
		r->status = status;
		r->verdict = WIFSIGNALED(status) ? HD__SIM_CRASH : WEXITSTATUS(status) != 0 ? HD__SIM_STATUS : HD__SIM_FINE;
	}
	if (r->steps == 0 && r->verdict == HD__SIM_FINE)
		die("the program never called hd_run, or it is not linked with heddle");
	if (r->steps == 0 && r->verdict == HD__SIM_STATUS && WEXITSTATUS(status) == 2)
		return 2; /* heddle has said why */
	bool fine = r->verdict == HD__SIM_FINE || r->verdict == HD__SIM_NOT_OVER;
	fflush(stdout);
	if (trace)
		tell_again(&plan, words);
	printf("heddle: after %" PRIu32 " steps, %.3f ms of virtual time, hash %016" PRIx64 ": ", r->steps,
	       (double)r->elapsed / 1e6, r->hash);
	print_verdict(s.page);
	return fine ? 0 : r->verdict == HD__SIM_ASTRAY || r->verdict == HD__SIM_FOREIGN ? 2 : 1;
}
