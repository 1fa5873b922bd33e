/* posix/thread.c - threads: processes with thread-local storage of their own.
 *
 * Owns:       the list of threads that heddle has started, and the first; what is known of each beside its process. A pthread_t is the id of a process.
 * Locking:    one lock, for the list and the names in it. No call is made under it.
 * Callers:    any thread. */
#include "posix/posix.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "os/lock.h"
#include "os/memory.h"
#include "sched/sched.h"

#define STACK_DEFAULT ((size_t)8 << 20) /* where there is no limit to take it from */

static unsigned char guard; /* the lock */
static struct hd__thread_face *all;
static int alive; /* threads of the list; any thread, atomically */
static int concurrency;
static struct hd__thread_face first = { .name = "main" };

/* In the storage of the thread, which moves with it. */
static _Thread_local struct hd__thread_face *mine;

static void add(struct hd__thread_face *t)
{
	hd__lock(&guard);
	t->next = all;
	t->prev = NULL;
	if (all != NULL)
		all->prev = t;
	all = t;
	hd__unlock(&guard);
	add_acq_rel(&alive, 1);
}

static void take_out(struct hd__thread_face *t)
{
	hd__lock(&guard);
	if (t->next != NULL)
		t->next->prev = t->prev;
	if (t->prev != NULL)
		t->prev->next = t->next;
	else
		all = t->next;
	hd__unlock(&guard);
}

static struct hd__thread_face *find_locked(hd_pid pid)
{
	struct hd__thread_face *t = all;

	while (t != NULL && t->pid != pid)
		t = t->next;
	return t;
}

/* What a thread does last, after its cleanups, or when its function has returned. */
static void end(void *arg)
{
	struct hd__thread_face *t = arg;

	hd__key_values_destroy(t);
	take_out(t);
	mine = NULL;
	if (t != &first)
		hd__os_free(t);
	if (add_acq_rel(&alive, -1) == 1 && first.pid != 0)
		exit(0); /* the last one, of a program that began with the first */
}

static void *run(void *arg)
{
	struct hd__thread_face *t = arg;

	mine = t;
	hd_cleanup_push(&t->last, end, t);
	hd_set_cancel_type(HD_CANCEL_UNWIND);
	void *result = t->start(t->arg);
	hd_set_cancel_state(HD_CANCEL_DISABLED);
	hd_cleanup_pop(&t->last, true);
	return result;
}

void hd__faces_begin(void)
{
	struct hd__key_value *values =
		mine != NULL ? mine->values : NULL; /* in a forked child, whose only thread the caller is */

	st_rlx(&guard, 0);
	all = NULL;
	st_rlx(&alive, 0);
	first = (struct hd__thread_face){ .name = "main", .pid = hd_self(), .values = values };
	mine = &first;
	add(&first);
	hd_cleanup_push(&first.last, end, &first);
}

struct hd__thread_face *hd__face(void)
{
	return mine;
}

bool hd__face_is_first(const struct hd__thread_face *t)
{
	return t == &first;
}

static size_t default_stack(void)
{
	struct rlimit limit;
	int saved = errno;
	bool known = getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;

	errno = saved;
	return known && limit.rlim_cur >= (size_t)PTHREAD_STACK_MIN ? limit.rlim_cur : STACK_DEFAULT;
}

/* The policy and priority of a new thread: of its attributes, or of its creator. */
static int choose(struct hd_spawn *how, const hd_pthread_attr_t *attr)
{
	struct hd_process_info me;

	if (attr->inherits == PTHREAD_EXPLICIT_SCHED) {
		if (!hd__posix_priority_is_valid(attr->policy, attr->priority))
			return EINVAL;
		how->policy = hd__posix_policy(attr->policy);
		how->priority = HD_PRIORITY_USER + attr->priority;
	} else if (hd_self() != 0 && hd_process_info(hd_self(), &me) == 0) {
		how->policy = me.policy;
		how->priority = me.priority;
	}
	return 0;
}

int hd_pthread_create(pthread_t *thread, const hd_pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
	struct hd_spawn how = { .suspended = true, .own_tls = true };
	hd_pthread_attr_t defaults;

	if (hd_self() == 0)
		hd_posix_begin(); /* in a forked child */
	if (attr == NULL) {
		hd_pthread_attr_init(&defaults);
		attr = &defaults;
	}
	int err = choose(&how, attr);
	if (err != 0)
		return err;
	how.stack_size = attr->stack_size != 0 ? attr->stack_size : default_stack();
	how.detached = attr->detached == PTHREAD_CREATE_DETACHED;
	struct hd__thread_face *t = hd__os_alloc(sizeof *t);
	if (t == NULL)
		return EAGAIN;
	t->start = start;
	t->arg = arg;
	t->attr = *attr;
	t->attr.stack_size = how.stack_size;
	add(t);
	hd_pid pid = hd_spawn_with(&how, run, t);
	if (pid < 0) {
		take_out(t);
		add_acq_rel(&alive, -1);
		hd__os_free(t);
		return EAGAIN;
	}
	st_rlx(&t->pid, pid); /* before it runs, and before the caller knows it */
	*thread = (pthread_t)pid;
	hd_resume(pid);
	return 0;
}

/* ---- the end of a thread ---- */

static int join(pthread_t thread, void **result, hd_time until)
{
	struct hd_end end;
	int err = hd_join_end((hd_pid)thread, &end, until);

	if (err == 0 && result != NULL)
		*result = end.kind == HD_END_RETURNED ? end.result : PTHREAD_CANCELED;
	if (err == -EBUSY)
		return EINVAL; /* another thread joins it */
	return hd__posix_error(err);
}

int hd_pthread_join(pthread_t thread, void **result)
{
	return join(thread, result, HD_FOREVER);
}

int hd_pthread_tryjoin_np(pthread_t thread, void **result)
{
	int err = join(thread, result, 0);
	return err == ETIMEDOUT ? EBUSY : err;
}

int hd_pthread_clockjoin_np(pthread_t thread, void **result, clockid_t clock, const struct timespec *until)
{
	hd_time at;
	int err = until != NULL ? hd__posix_until(clock, until, &at) : (at = HD_FOREVER, 0);
	return err == 0 ? join(thread, result, at) : err;
}

int hd_pthread_timedjoin_np(pthread_t thread, void **result, const struct timespec *until)
{
	return hd_pthread_clockjoin_np(thread, result, CLOCK_REALTIME, until);
}

int hd_pthread_detach(pthread_t thread)
{
	return hd__posix_error(hd_detach((hd_pid)thread));
}

void hd_pthread_exit(void *result)
{
	hd_exit(result);
	if (mine == NULL)
		pthread_exit(result); /* a thread of the C library's */
	hd__key_values_destroy(mine); /* the only thread of a forked child */
	exit(0);
}

/* ---- what a thread is ---- */

pthread_t hd_pthread_self(void)
{
	hd_pid pid = mine != NULL ? mine->pid : hd_self(); /* in a handler, the one that it has interrupted */
	return pid != 0 ? (pthread_t)pid : pthread_self();
}

int hd_pthread_equal(pthread_t a, pthread_t b)
{
	return a == b;
}

/* Whether there is such a thread, and it has not ended. */
static int look_for(pthread_t thread)
{
	struct hd_process_info info;
	int err = hd_process_info((hd_pid)thread, &info);

	return err == 0 && info.state == HD_ENDED ? ESRCH : hd__posix_error(err);
}

int hd_pthread_kill(pthread_t thread, int signal)
{
	if (signal < 0 || signal >= NSIG)
		return EINVAL;
	if (thread == hd_pthread_self())
		return signal == 0 || raise(signal) == 0 ? 0 : errno;
	int err = look_for(thread);
	if (err != 0 || signal == 0)
		return err;
	return kill(getpid(), signal) == 0 ? 0 : errno; /* whichever thread has it: see docs/posix.md */
}

int hd_pthread_setname_np(pthread_t thread, const char *name)
{
	int err = 0;

	if (strlen(name) >= sizeof first.name)
		return ERANGE;
	hd__lock(&guard);
	struct hd__thread_face *t = find_locked((hd_pid)thread);
	if (t != NULL)
		strcpy(t->name, name);
	else
		err = ESRCH;
	hd__unlock(&guard);
	return err;
}

int hd_pthread_getname_np(pthread_t thread, char *name, size_t size)
{
	int err = 0;

	hd__lock(&guard);
	struct hd__thread_face *t = find_locked((hd_pid)thread);
	if (t == NULL)
		err = ESRCH;
	else if (strlen(t->name) >= size)
		err = ERANGE;
	else
		strcpy(name, t->name);
	hd__unlock(&guard);
	return err;
}

int hd_pthread_getattr_np(pthread_t thread, hd_pthread_attr_t *attr)
{
	struct hd_process_info info;
	int err = hd_process_info((hd_pid)thread, &info);

	if (err != 0)
		return hd__posix_error(err);
	hd__lock(&guard);
	struct hd__thread_face *t = find_locked((hd_pid)thread);
	if (t != NULL)
		*attr = t->attr;
	hd__unlock(&guard);
	if (t == NULL)
		return ESRCH;
	attr->detached = info.detached ? PTHREAD_CREATE_DETACHED : PTHREAD_CREATE_JOINABLE;
	hd_pthread_getschedparam(thread, &attr->policy, &(struct sched_param){ 0 });
	attr->priority = info.priority > HD_PRIORITY_USER ? info.priority - HD_PRIORITY_USER : 0;
	if (t != &first && t == mine)
		attr->stack = hd__self()->current->stack;
	return 0;
}

int hd_pthread_getconcurrency(void)
{
	return ld_rlx(&concurrency);
}

int hd_pthread_setconcurrency(int level)
{
	if (level < 0)
		return EINVAL;
	st_rlx(&concurrency, level);
	return 0;
}
