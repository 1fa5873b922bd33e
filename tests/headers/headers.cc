/* headers/headers.cc - a C++ program that uses every header. */
#include <heddle.h>

#include <cerrno>
#include <cstring>

static hd_semaphore one = HD_SEMAPHORE(1);
static hd_mutex mutex = HD_MUTEX(HD_IN_ORDER);
static hd_monitor monitor = HD_MONITOR(0);
static hd_condition condition = HD_CONDITION;
static hd_rwlock rwlock = HD_RWLOCK(HD_PREFER_WRITERS);
static hd_barrier barrier = HD_BARRIER(1);
static hd_event event = HD_EVENT(HD_EVENT_AUTO);
static hd_waitgroup tasks = HD_WAITGROUP(1);
static hd_local local = HD_LOCAL(nullptr);
static struct hd_once once = HD_ONCE; /* `struct`: there is a function of this name */
static int failures;

static void check(bool so)
{
	failures += !so;
}

static void count(void *n)
{
	++*static_cast<int *>(n);
}

static bool is_positive(void *n)
{
	return *static_cast<int *>(n) > 0;
}

static void *same(void *x)
{
	return x;
}

static void use_locks()
{
	int n = 0;

	check(hd_mutex_critical(&mutex, count, &n, hd_after(HD_SEC(5))) == 0);
	check(hd_semaphore_critical(&one, count, &n, HD_FOREVER) == 0);
	check(hd_once(&once, count, &n, HD_FOREVER) == 0 && hd_once_is_done(&once) && n == 3);
	n = 0;
	check(hd_monitor_enter(&monitor, HD_FOREVER) == 0);
	check(hd_monitor_wait_while(&monitor, &condition, is_positive, &n, HD_FOREVER) == 0 && hd_monitor_exit(&monitor) == 0);
	check(hd_rwlock_read(&rwlock, HD_FOREVER) == 0 && hd_rwlock_unlock(&rwlock) == 0);
	check(hd_barrier_wait(&barrier, HD_FOREVER) == 1);
	check(hd_mutex_lock(&mutex, HD_SEC(5)) == -EINVAL && std::strcmp(hd_error(-ENXIO), "no runtime runs") == 0);
}

static void use_children()
{
	const char *const argv[] = { "echo", "loom", nullptr };
	struct hd_child how = {};
	struct hd_signal info = {};
	char text[8];
	int status;
	sigset_t none = {};

	how.argv = argv;
	check(hd_child_output(&how, text, sizeof text, &status, HD_FOREVER) == 5 && status == 0);
	check(hd_sigwait(&none, &status, 0) == -EINVAL && hd_sigwaitinfo(&none, &info, 0) == -EINVAL);
}

static void use_processes(void *arg)
{
	auto how = hd_spawn_how();
	how.name = "second";
	how.stack_size = 128 << 10;
	hd_pid pid = hd_spawn_with(
		&how, [](void *x) { return x; }, arg);
	void *result = nullptr;
	struct hd_process_info info; /* and of this one */
	struct hd_stats stats;	     /* and of this one */
	check(hd_process_info(pid, &info) == 0 && std::strcmp(info.name, "second") == 0);
	check(hd_join(pid, &result, hd_after(HD_SEC(5))) == 0 && result == arg && hd_stats(&stats) == 0);
	check(hd_local_set(&local, arg) == 0 && hd_local_get(&local) == arg);

	hd_group group = {};
	check(hd_group_spawn(&group, same, nullptr) > 0 && hd_group_wait(&group, HD_FOREVER) == 0);
	hd_cleanup cleanup;
	check(hd_cleanup_push(&cleanup, count, &failures) == 0 && hd_cleanup_pop(&cleanup, false) == 0);
}

struct job {
	const char *what;
	int64_t urgency;
};

static void *put_one(void *queue)
{
	int item = 5;

	check(hd_queue_put(static_cast<hd_queue *>(queue), &item, HD_FOREVER) == 0);
	return nullptr;
}

static void use_queues()
{
	hd_queue *jobs = hd_queue_new_ordered(sizeof(job), 4, offsetof(job, urgency));
	hd_queue *meeting = hd_queue_new_rendezvous(sizeof(int));
	job later = { "later", 9 }, soon = { "soon", 1 }, got;
	int item = 0;

	check(hd_queue_put(jobs, &later, HD_FOREVER) == 0 && hd_queue_put(jobs, &soon, HD_FOREVER) == 0);
	check(hd_queue_next(jobs, &got, HD_FOREVER) == 0 && std::strcmp(got.what, "soon") == 0);
	hd_pid pid = hd_spawn(put_one, meeting);
	check(hd_queue_next(meeting, &item, HD_FOREVER) == 0 && item == 5 && hd_join(pid, nullptr, HD_FOREVER) == 0);
	hd_queue_drop(jobs);
	hd_queue_drop(meeting);
}

static void use_cases(void *arg)
{
	hd_queue *queue = hd_queue_new(sizeof(int), 1);
	hd_promise *promise = hd_promise_spawn_with(nullptr, same, arg);
	int item = 7, taken = 0;
	void *value = nullptr;
	struct hd_end end;
	hd_pid pid = hd_spawn(same, nullptr);

	hd_case cases[] = { hd_case_put(queue, &item), hd_case_next(queue, &taken),
			    hd_case_semaphore(&one),   hd_case_promise(promise, &value),
			    hd_case_join(pid, &end),   hd_case_time(hd_after(HD_MS(1))),
			    hd_case_event(&event),     hd_case_waitgroup(&tasks) };
	check(hd_event_set(&event) == 0 && hd_waitgroup_done(&tasks) == 0);
	for (int i = 0; i < 8; i++) {
		int which = hd_select(cases, 8, HD_FOREVER);
		check(which >= 0 && cases[which].err == 0);
		if (which >= 0)
			cases[which].kind = HD_CASE_NOTHING;
	}
	check(taken == 7 && value == arg && end.kind == HD_END_RETURNED);
	hd_promise_release(promise);
	hd_queue_drop(queue);
}

static void *first(void *arg)
{
	use_locks();
	use_children();
	use_processes(arg);
	use_queues();
	use_cases(arg);
	return nullptr;
}

int main()
{
	int token = 0;
	hd_config config = {};

	config.workers = 2;
	errno = EDOM;
	check(*hd_errno() == EDOM);
	check(hd_run(&config, first, &token) == 0);
	check(!hd_semaphore_is_signaled(&one)); /* use_cases has taken it */
	return failures;
}
