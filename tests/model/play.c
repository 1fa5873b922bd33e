/* model/play.c - plays scripts on the runtime and on the model, and compares.
 *
 * Main is the first process; it plays script after script, because a runtime costs more to start than a script to play. A
 * runtime that goes wrong may crash, hang, or be left in any state: so it has an OS process of its own, which ends at
 * the first script that goes wrong. */
#define _GNU_SOURCE
#include "model/play.h"

#include <errno.h>
#include <fcntl.h>
#include <heddle.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/harness.h"
#include "model/model.h"

enum { AFTER = 6 /* steps that are still of interest after the first that differs */ };

/* One at a time, in the OS process that plays. */
static struct {
	struct stage *stage;
	enum hd_preempted preempted;
	script_source *source;
	void *context;
	int milliseconds;
	hd_pid pids[PROCESSES_MAX]; /* 0: not spawned yet */
	bool alive[PROCESSES_MAX];
	struct hd_semaphore semaphores[SEMAPHORES_MAX];
} now;

static void record(unsigned process, int index, struct op op, int result)
{
	struct stage *stage = now.stage;
	unsigned n = stage->real.count;
	struct event e = { .process = (uint8_t)process, .op = op, .index = (int16_t)index, .result = result };
	const struct event *expected = &stage->expected.events[n];

	stage->real.events[n] = e;
	stage->real.count = n + 1;
	if (stage->difference < 0 &&
	    (n >= stage->expected.count || e.process != expected->process || e.index != expected->index ||
	     memcmp(&e.op, &expected->op, sizeof e.op) != 0 || e.result != expected->result))
		stage->difference = n;
	if (stage->difference >= 0 && (n >= stage->difference + AFTER || n + 1 == EVENTS_MAX))
		_exit(PLAYED_DIFFERENT);
}

static void *body(void *arg);

static int spawn(struct op op)
{
	const struct hd_spawn how = { .priority = op.priority, .suspended = op.flag };

	now.alive[op.who] = true; /* it may have ended when spawn returns */
	hd_pid pid = hd_spawn_with(&how, body, (void *)(uintptr_t)op.who);
	if (pid < 0)
		return (int)pid;
	now.pids[op.who] = pid; /* if it has run it has said so itself */
	return 0;
}

static int join(hd_pid pid, hd_time until)
{
	void *result;
	int err = hd_join(pid, &result, until);

	return err != 0 ? err : (int)(intptr_t)result;
}

static int look(hd_pid pid)
{
	struct hd_process_info info;
	int err = hd_process_info(pid, &info);

	return err != 0 ? err : script_look(info.state, HD_ENDED, info.why, info.suspended, info.priority);
}

static int perform(struct op op)
{
	switch (op.kind) {
	case OP_SPAWN:
		return spawn(op);
	case OP_RESUME:
		return hd_resume(now.pids[op.who]);
	case OP_SUSPEND:
		return hd_suspend(now.pids[op.who], HD_FOREVER);
	case OP_YIELD:
		return hd_yield();
	case OP_CHECKPOINT:
		return hd_checkpoint();
	case OP_WAIT:
		return hd_semaphore_wait(&now.semaphores[op.who], HD_FOREVER);
	case OP_TRY_WAIT:
		return hd_semaphore_try_wait(&now.semaphores[op.who]);
	case OP_SIGNAL:
		return hd_semaphore_signal(&now.semaphores[op.who]);
	case OP_POST:
		hd_semaphore_signal_from_handler(&now.semaphores[op.who]);
		return op.flag ? hd_yield() : hd_checkpoint();
	case OP_SET_PRIORITY:
		return hd_set_priority(now.pids[op.who], op.priority);
	case OP_JOIN:
		return join(now.pids[op.who], HD_FOREVER);
	case OP_TRY_JOIN:
		return join(now.pids[op.who], 0);
	case OP_DETACH:
		return hd_detach(now.pids[op.who]);
	case OP_LOOK:
		return look(now.pids[op.who]);
	default:
		return -ENOSYS;
	}
}

static void *body(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg, i;

	now.pids[me] = hd_self();
	record(me, -1, (struct op){ .kind = OP_START }, 0);
	for (i = 0; i < now.stage->script.process[me].count; i++) {
		struct op op = now.stage->script.process[me].ops[i];
		if (op.kind == OP_EXIT) {
			record(me, (int)i, op, 0);
			now.alive[me] = false;
			if (op.flag)
				hd_fail(EIO);
			hd_exit((void *)(intptr_t)script_result(me, i));
		}
		record(me, (int)i, op, perform(op));
	}
	now.alive[me] = false;
	return (void *)(intptr_t)script_result(me, i);
}

static void play_one(const struct script *s)
{
	struct release release = { 0 };
	struct op op;
	unsigned i;

	memset(now.pids, 0, sizeof now.pids);
	memset(now.alive, 0, sizeof now.alive);
	now.pids[0] = hd_self();
	for (i = 0; i < s->semaphores; i++)
		hd_semaphore_init(&now.semaphores[i], s->signals[i]);
	hd_set_priority(hd_self(), HD_PRIORITY_LOWEST);
	record(0, -1, (struct op){ .kind = OP_START }, 0);
	for (i = 0; i < s->process[0].count; i++)
		record(0, (int)i, s->process[0].ops[i], perform(s->process[0].ops[i]));
	while (script_release(s, &release, now.alive, &op))
		record(0, (int)i++, op, perform(op));
}

static void *play_all(void *arg)
{
	struct stage *stage = now.stage;

	(void)arg;
	while (now.source(&stage->script, now.context)) {
		struct itimerval limit = { .it_value = { now.milliseconds / 1000, now.milliseconds % 1000 * 1000 } };

		stage->real.count = 0;
		stage->difference = -1;
		model_run(&stage->script, now.preempted, &stage->expected, NULL);
		setitimer(ITIMER_REAL, &limit, NULL);
		play_one(&stage->script);
		if (stage->real.count != stage->expected.count)
			stage->difference = stage->real.count;
		if (stage->difference >= 0)
			_exit(PLAYED_DIFFERENT);
	}
	return NULL;
}

static void child(bool quiet)
{
	const struct hd_config config = { .preempted = now.preempted, .fixed = true, .workers = 1 };

	if (quiet) {
		int null = open("/dev/null", O_WRONLY);
		dup2(null, STDERR_FILENO);
	}
	signal(SIGALRM, SIG_DFL);
	now.stage->code = hd_run(&config, play_all, NULL);
	if (now.stage->code == 0)
		_exit(PLAYED_SAME);
	if (now.stage->difference < 0)
		now.stage->difference = now.stage->real.count;
	_exit(PLAYED_DIFFERENT);
}

struct stage *stage_new(void)
{
	struct stage *stage = mmap(NULL, sizeof *stage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(stage != MAP_FAILED);
	return stage;
}

void stage_drop(struct stage *stage)
{
	munmap(stage, sizeof *stage);
}

enum played play(struct stage *stage, enum hd_preempted preempted, script_source *source, void *context, int milliseconds,
		 bool quiet)
{
	int status;

	now.stage = stage;
	now.preempted = preempted;
	now.source = source;
	now.context = context;
	now.milliseconds = milliseconds;
	stage->code = 0;
	fflush(NULL);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		child(quiet);
	CHECK(waitpid(pid, &status, 0) == pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) <= PLAYED_DIFFERENT)
		return WEXITSTATUS(status);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? PLAYED_FOREVER : PLAYED_DIED;
}
