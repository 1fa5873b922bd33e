/* posix/sched.c - policies and priorities of threads, whoever runs the program: SCHED_OTHER is HD_IO at HD_PRIORITY_USER, SCHED_FIFO and SCHED_RR are
 * HD_FIFO and HD_RR at the priorities above.
 *
 * Callers:    any thread. */
#include "posix/posix.h"

enum hd_policy hd__posix_policy(int policy)
{
	return policy == SCHED_FIFO ? HD_FIFO : policy == SCHED_RR ? HD_RR : policy == SCHED_OTHER ? HD_IO : HD_POLICY_DEFAULT;
}

int hd__posix_policy_of(enum hd_policy policy)
{
	return policy == HD_FIFO ? SCHED_FIFO : policy == HD_RR ? SCHED_RR : SCHED_OTHER;
}

bool hd__posix_priority_is_valid(int policy, int priority)
{
	return hd__posix_policy(policy) != HD_POLICY_DEFAULT && priority >= hd_sched_get_priority_min(policy) &&
	       priority <= hd_sched_get_priority_max(policy);
}

int hd_sched_get_priority_max(int policy)
{
	if (hd__posix_policy(policy) == HD_POLICY_DEFAULT)
		return sched_get_priority_max(policy); /* one of the kernel's, or an error */
	return policy == SCHED_OTHER ? 0 : HD__POSIX_PRIORITY_MAX;
}

int hd_sched_get_priority_min(int policy)
{
	if (hd__posix_policy(policy) == HD_POLICY_DEFAULT)
		return sched_get_priority_min(policy);
	return policy == SCHED_OTHER ? 0 : 1;
}

int hd_sched_yield(void)
{
	return hd_yield() == 0 ? 0 : sched_yield();
}

int hd_pthread_getschedparam(pthread_t thread, int *policy, struct sched_param *param)
{
	struct hd_process_info info;
	int err = hd_process_info((hd_pid)thread, &info);

	if (err != 0 || info.state == HD_ENDED)
		return ESRCH;
	*policy = hd__posix_policy_of(info.policy);
	*param = (struct sched_param){ .sched_priority =
					       info.priority > HD_PRIORITY_USER ? info.priority - HD_PRIORITY_USER : 0 };
	return 0;
}

int hd_pthread_setschedparam(pthread_t thread, int policy, const struct sched_param *param)
{
	if (!hd__posix_priority_is_valid(policy, param->sched_priority))
		return EINVAL;
	int err = hd_set_policy((hd_pid)thread, hd__posix_policy(policy));
	return hd__posix_error(err != 0 ? err : hd_set_priority((hd_pid)thread, HD_PRIORITY_USER + param->sched_priority));
}

int hd_pthread_setschedprio(pthread_t thread, int priority)
{
	int policy;
	struct sched_param param;
	int err = hd_pthread_getschedparam(thread, &policy, &param);

	param.sched_priority = priority;
	return err == 0 ? hd_pthread_setschedparam(thread, policy, &param) : err;
}
