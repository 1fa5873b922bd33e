/* headers/headers.cc - the public headers as a C++ program sees them. */
#include <heddle.h>

#include <cerrno>

static hd_semaphore one = HD_SEMAPHORE(1);
static hd_mutex mutex = HD_MUTEX(HD_IN_ORDER);
static hd_monitor monitor = HD_MONITOR(0);
static hd_event event = HD_EVENT(HD_EVENT_AUTO);
static hd_local local = HD_LOCAL(nullptr);

static void *first(void *arg)
{
	struct hd_spawn how = {};
	how.name = "second";
	hd_pid pid = hd_spawn_with(
		&how, [](void *x) { return x; }, arg);
	void *result = nullptr;
	if (hd_join(pid, &result, hd_after(HD_SEC(5))) != 0 || hd_local_set(&local, result) != 0 ||
	    hd_semaphore_wait(&one, HD_FOREVER) != 0)
		return nullptr;
	return hd_local_get(&local);
}

int main()
{
	int token = 0;
	errno = EDOM;
	if (*hd_errno() != EDOM)
		return 1;
	int code = hd_run(nullptr, first, &token);
	struct hd_case cases[] = { hd_case_time(0), hd_case_semaphore(&one) };
	if (hd_select(cases, 2, 0) >= 0 || hd_mutex_is_mine(&mutex) || hd_event_is_set(&event) ||
	    hd_monitor_exit(&monitor) == 0)
		return 1;
	return code == 0 && !hd_semaphore_is_signaled(&one) ? 0 : 1;
}
