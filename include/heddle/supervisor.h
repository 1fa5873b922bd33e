/* heddle/supervisor.h - processes that are started again when they end.
 *
 * A supervisor is a process that starts others, its children, from a table, and waits. When a child ends that should not have ended, the
 * supervisor starts it again, alone or together with its siblings. If that happens too often, it stops all its children and fails in its
 * turn, which is for its own supervisor to deal with: supervisors form trees. No child outlives its supervisor, unless it does not end when it
 * is terminated. */
#ifndef HEDDLE_SUPERVISOR_H
#define HEDDLE_SUPERVISOR_H

#include <heddle/base.h>
#include <heddle/port.h>
#include <heddle/process.h>

HD_BEGIN

/* After which ends a child is started again. */
enum hd_restart {
	HD_RESTART_ALWAYS = 0, /* after each */
	HD_RESTART_ON_FAILURE, /* unless it has returned */
	HD_RESTART_NEVER       /* after none; its end means nothing to its siblings */
};

/* A child, as the table says it. Zeroed memory with an entry is a child that is always started again. Of `how` the fields group, port, link
 * and watch stay zero; detached is set in any case. If how.machine is set, the child is a machine (machine.h): entry(arg), called in the supervisor at every
 * start, makes its `self` (NULL: it could not be started). A child that must be found has a name that it registers (hd_register) when it starts. */
struct hd_supervised {
	const char *name; /* of its process, unless how.name has one; for hd_supervisor_stop; or NULL */
	hd_entry entry;
	void *arg;
	enum hd_restart restart;
	hd_time shutdown; /* how long it may take to end when it is terminated; 0: 5 s, or if it is a hd_supervisor_entry for ever */
	struct hd_spawn how;
};

/* Which children are stopped and started again with one that has ended. Children are started in the order of the table, and stopped in the
 * opposite order, each when the one before is dead. */
enum hd_strategy {
	HD_ONE_FOR_ONE = 0, /* none */
	HD_ONE_FOR_ALL,	    /* all */
	HD_REST_FOR_ONE	    /* those after it in the table */
};

/* Values of hd_supervisor.restarts. */
#define HD_RESTARTS_NONE (-1)		 /* the first restart is one too many */
#define HD_RESTARTS_UNLIMITED 0x7fffffff /* none is */
#define HD_RESTARTS_MAX 1000000		 /* the most that can be counted */

/* A supervisor and its children. Zeroed memory with children is one-for-one, with 3 restarts in 5 s. It stays as it is, with all that it
 * points to, until hd_supervise returns. */
struct hd_supervisor {
	enum hd_strategy strategy;
	int restarts;	 /* more of them than this... 0: 3 */
	hd_time within;	 /* ...within this time, and the supervisor gives up; 0: 5 s */
	hd_time backoff; /* how long it waits before the first restart of a child; 0: it does not wait */
	hd_time backoff_max; /* each further wait is twice as long, up to this; 0: 30 s. A child that has lived for `within` begins anew */
	const char *name; /* under which hd_whereis finds its port, for hd_supervisor_children and its like; NULL: none */
	const struct hd_supervised *children;
	size_t count; /* of children */
	/* Called in the supervisor when a child has ended that the supervisor did not stop; it may wait. Or NULL. */
	void (*ended)(const struct hd_supervised *child, const struct hd_end *end, void *arg);
	void *arg; /* for `ended` */
};

/* Supervises: the calling process starts the children, and starts them again. Siblings that are stopped with a child are started again with it,
 * those too that had returned, but not those of HD_RESTART_NEVER; together they are one restart. A child that cannot be started again for want
 * of memory counts as one that has failed. Returns when it has no child any more, or has stopped all that it had:
 *
 *   0                  all children have ended, and none is to be started again
 *   -ENOTRECOVERABLE   more restarts than allowed
 *   -ETIMEDOUT         a child was terminated and did not end in its time: it has disabled cancellation. Its name is reported on stderr;
 *                      the child ends when it enables cancellation, and until then it is there
 *   -ECANCELED         the caller was cancelled
 *   -EINVAL            a value is out of range, or a child has no entry
 *   -EEXIST            another port has the name
 *   -ENOTSUP           on a plain thread
 *
 * or why a child could not be started: as hd_spawn_with. If the caller is terminated, it stops its children before it ends. Cancellation
 * point. */
HD_API HD_MUST_USE int hd_supervise(const struct hd_supervisor *supervisor);

/* An entry for hd_spawn_with, and for a child that is a supervisor itself: `supervisor` is a struct hd_supervisor. Returns NULL when
 * hd_supervise answers 0, and fails (hd_fail) with what else it answers. */
HD_API void *hd_supervisor_entry(void *supervisor);

/* What a child does. */
enum hd_supervised_state {
	HD_SUPERVISED_RUNS = 1,
	HD_SUPERVISED_DUE,    /* it will be started again */
	HD_SUPERVISED_ENDED,  /* and is not to be started again */
	HD_SUPERVISED_STOPPED /* by hd_supervisor_stop */
};
struct hd_supervised_info {
	char name[HD_NAME_SIZE]; /* "" is none */
	hd_pid pid;		 /* HD_SUPERVISED_RUNS; else 0 */
	enum hd_supervised_state state;
	unsigned restarts; /* times that it was started again */
};

/* Asks a supervisor, by its port (hd_supervisor.name, hd_whereis), for its children: hd_supervisor_children stores what it knows of the first
 * n, in the order of the table, and returns how many there are. hd_supervisor_stop stops the child of this name, which is not started again
 * before hd_supervisor_restart; a supervisor with such a child does not return. hd_supervisor_restart starts it, after it has stopped it if it
 * runs; its siblings go on, and it does not count as a restart. Return 0 or the count;
 *
 *   -ENOENT      there is no child of that name
 *   -ESRCH       the supervisor's process has ended
 *   -EPIPE       the supervisor has ended, or ends
 *   -ETIMEDOUT   it has not answered by `until`; or the child did not end in its time, and the supervisor gives up
 *   -EINVAL      the name is NULL or too long
 *
 * or as hd_call, or why the child could not be started, and then it stays stopped. Process. Cancellation point. */
HD_API HD_MUST_USE int hd_supervisor_children(hd_port *supervisor, struct hd_supervised_info *info, size_t n, hd_time until);
HD_API HD_MUST_USE int hd_supervisor_stop(hd_port *supervisor, const char *child, hd_time until);
HD_API HD_MUST_USE int hd_supervisor_restart(hd_port *supervisor, const char *child, hd_time until);

HD_END
#endif
