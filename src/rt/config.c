/* rt/config.c - what to run with: defaults, the caller's wishes, the environment.
 *
 * A value that makes no sense is an error that names it, never a silent default. An empty variable is as good as none. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/variable.h"
#include "os/inspect.h"
#include "rt/rt.h"

#define STACK_SIZE ((size_t)64 << 10)
#define QUANTUM HD_MS(10)
#define BLOCKING_THREADS 256
#define BLOCKING_THREADS_MAX 65536

/* Reads a number from the environment into *value, if it is there. Returns 0 or -EINVAL. */
static int number(const char *name, long long least, long long most, long long *value)
{
	const char *text = hd__variable(name);
	char *end;

	if (text == NULL)
		return 0;
	int saved = errno;
	errno = 0;
	long long n = strtoll(text, &end, 10);
	bool bad = errno != 0 || end == text || *end != 0 || n < least || n > most;
	errno = saved;
	if (bad) {
		hd__complain("heddle: %s=%s: not a number from %lld to %lld\n", name, text, least, most);
		return -EINVAL;
	}
	*value = n;
	return 0;
}

/* Reads one of some words; *value becomes its place in the list, counted from `first`. */
static int word(const char *name, const char *const words[], int first, int *value)
{
	const char *text = hd__variable(name);

	if (text == NULL)
		return 0;
	for (int i = 0; words[i] != NULL; i++)
		if (strcmp(text, words[i]) == 0) {
			*value = first + i;
			return 0;
		}
	hd__complain("heddle: %s=%s: expected %s", name, text, words[0]);
	for (int i = 1; words[i] != NULL; i++)
		hd__complain(", %s", words[i]);
	hd__complain("\n");
	return -EINVAL;
}

/* Reads the signal that preempts: a number, or "off". */
static int signal_number(int *value)
{
	const char *text = hd__variable("HEDDLE_PREEMPT_SIGNAL");
	long long n = *value;

	if (text != NULL && strcmp(text, "off") == 0) {
		*value = -1;
		return 0;
	}
	int err = number("HEDDLE_PREEMPT_SIGNAL", 1, SIGRTMAX, &n);
	*value = (int)n;
	return err;
}

static int from_environment(struct hd_config *c)
{
	static const char *const policies[] = { "fifo", "rr", "io", NULL };
	static const char *const preempted[] = { "tail", "head", NULL };
	static const char *const deadlocks[] = { "ignore", "report", "abort", NULL };
	static const char *const warnings[] = { "none", "stuck", "blocked", "all", NULL };
	long long workers = c->workers, stack_size = (long long)c->stack_size, quantum = c->quantum, pinned = c->pinned;
	long long blocking_threads = c->blocking_threads, spares = c->spares;
	int policy = (int)c->policy, where = (int)c->preempted, deadlock = (int)c->deadlock,
	    warn = c->warn_stuck | c->warn_blocked << 1;
	int err = 0;

	if ((err = number("HEDDLE_WORKERS", 1, HD__WORKERS_MAX, &workers)) != 0 ||
	    (err = number("HEDDLE_STACK_SIZE", 1, 1LL << HD__STACK_MAX_CLASS, &stack_size)) != 0 ||
	    (err = word("HEDDLE_POLICY", policies, HD_FIFO, &policy)) != 0 ||
	    (err = number("HEDDLE_QUANTUM", 1, LLONG_MAX / 2, &quantum)) != 0 ||
	    (err = word("HEDDLE_PREEMPTED", preempted, HD_PREEMPTED_TAIL, &where)) != 0 ||
	    (err = number("HEDDLE_PINNED", 0, 1, &pinned)) != 0 ||
	    (err = word("HEDDLE_DEADLOCK", deadlocks, HD_DEADLOCK_IGNORE, &deadlock)) != 0 ||
	    (err = word("HEDDLE_WARN", warnings, 0, &warn)) != 0 || (err = signal_number(&c->preempt_signal)) != 0 ||
	    (err = number("HEDDLE_BLOCKING_THREADS", 1, BLOCKING_THREADS_MAX, &blocking_threads)) != 0 ||
	    (err = number("HEDDLE_SPARES", 0, HD__WORKERS_MAX - 1, &spares)) != 0)
		return err;
	c->workers = (unsigned)workers;
	c->stack_size = (size_t)stack_size;
	c->policy = (enum hd_policy)policy;
	c->quantum = quantum;
	c->preempted = (enum hd_preempted)where;
	c->pinned = pinned != 0;
	c->deadlock = (enum hd_deadlock)deadlock;
	c->warn_stuck = warn & 1;
	c->warn_blocked = warn & 2;
	c->blocking_threads = (unsigned)blocking_threads;
	if (hd__variable("HEDDLE_SPARES") != NULL)
		c->spares = spares > 0 ? (int)spares : -1;
	if (hd__variable("HEDDLE_PREEMPTIBLE") != NULL)
		c->preemptible = hd__variable("HEDDLE_PREEMPTIBLE");
	return 0;
}

/* For the engineer who looks at the program from outside: it changes nothing inside, and counts also if the configuration is fixed. */
static int allow_inspection(void)
{
	long long allowed = 0;
	int err = number("HEDDLE_INSPECT", 0, 1, &allowed);

	if (allowed)
		hd__os_allow_inspection();
	return err;
}

int hd__config_quit(uint8_t *quit)
{
	static const char *const words[] = { "core", "dump", "off", NULL };
	int value = HD__QUIT_CORE, err = word("HEDDLE_QUIT", words, HD__QUIT_CORE, &value);

	*quit = (uint8_t)value;
	return err;
}

static int refuse(const char *field, int err)
{
	hd__complain("heddle: hd_config.%s is out of range\n", field);
	return err;
}

/* There are spares only if some were asked for: one worker alone runs one process at a time, in a known order, and programs rely on it. */
static void resolve_spares(struct hd_config *c)
{
	int most = HD__WORKERS_MAX - (int)c->workers;

	if (c->spares < 0)
		c->spares = 0;
	if (c->spares > most)
		c->spares = most;
}

int hd__config_resolve(struct hd_config *c, const struct hd_config *given)
{
	*c = given != NULL ? *given : (struct hd_config){ 0 };
	if (c->policy < HD_POLICY_DEFAULT || c->policy > HD_IO)
		return refuse("policy", -EINVAL);
	if (c->preempted < HD_PREEMPTED_TAIL || c->preempted > HD_PREEMPTED_HEAD)
		return refuse("preempted", -EINVAL);
	if (c->deadlock < HD_DEADLOCK_IGNORE || c->deadlock > HD_DEADLOCK_ABORT)
		return refuse("deadlock", -EINVAL);
	if (c->quantum < 0)
		return refuse("quantum", -EINVAL);
	if (c->workers > HD__WORKERS_MAX)
		return refuse("workers", -EINVAL);
	if (c->preempt_signal < -1 || c->preempt_signal > SIGRTMAX)
		return refuse("preempt_signal", -EINVAL);
	if (c->blocking_threads > BLOCKING_THREADS_MAX)
		return refuse("blocking_threads", -EINVAL);
	if (c->spares < -1 || c->spares >= HD__WORKERS_MAX)
		return refuse("spares", -EINVAL);
	if (c->blocking_threads == 0)
		c->blocking_threads = BLOCKING_THREADS;
	if (c->stack_size == 0)
		c->stack_size = STACK_SIZE;
	if (hd__stack_class(c->stack_size) == 0)
		return refuse("stack_size", -EINVAL);
	if (c->policy == HD_POLICY_DEFAULT)
		c->policy = HD_FIFO;
	if (c->quantum == 0)
		c->quantum = QUANTUM;
	int err = c->fixed ? 0 : from_environment(c);
	if (c->preempt_signal == 0)
		c->preempt_signal = SIGURG;
	if (err == 0)
		err = allow_inspection();
	if (c->workers == 0) {
		unsigned cpus = hd__os_cpus();
		c->workers = cpus < HD__WORKERS_MAX ? cpus : HD__WORKERS_MAX;
	}
	resolve_spares(c);
	return err;
}
