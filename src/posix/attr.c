/* posix/attr.c - attributes of threads: kept, and heeded where hd_pthread_create says.
 *
 * The stack of the program's own that hd_pthread_attr_setstack names is not used: the thread has one of heddle's, of that size at least, with a guard.
 * Callers:    any thread. */
#include "posix/posix.h"

#include <limits.h>

int hd_pthread_attr_init(hd_pthread_attr_t *attr)
{
	*attr = (hd_pthread_attr_t){ .detached = PTHREAD_CREATE_JOINABLE,
				     .inherits = PTHREAD_INHERIT_SCHED,
				     .policy = SCHED_OTHER,
				     .scope = PTHREAD_SCOPE_SYSTEM,
				     .guard_size = (size_t)64 << 10 };
	return 0;
}

int hd_pthread_attr_destroy(hd_pthread_attr_t *attr)
{
	(void)attr;
	return 0;
}

int hd_pthread_attr_getdetachstate(const hd_pthread_attr_t *attr, int *state)
{
	*state = attr->detached;
	return 0;
}

int hd_pthread_attr_setdetachstate(hd_pthread_attr_t *attr, int state)
{
	if (state != PTHREAD_CREATE_JOINABLE && state != PTHREAD_CREATE_DETACHED)
		return EINVAL;
	attr->detached = state;
	return 0;
}

int hd_pthread_attr_getguardsize(const hd_pthread_attr_t *attr, size_t *size)
{
	*size = attr->guard_size;
	return 0;
}

int hd_pthread_attr_setguardsize(hd_pthread_attr_t *attr, size_t size)
{
	attr->guard_size = size;
	return 0;
}

int hd_pthread_attr_getinheritsched(const hd_pthread_attr_t *attr, int *inherits)
{
	*inherits = attr->inherits;
	return 0;
}

int hd_pthread_attr_setinheritsched(hd_pthread_attr_t *attr, int inherits)
{
	if (inherits != PTHREAD_INHERIT_SCHED && inherits != PTHREAD_EXPLICIT_SCHED)
		return EINVAL;
	attr->inherits = inherits;
	return 0;
}

int hd_pthread_attr_getschedparam(const hd_pthread_attr_t *attr, struct sched_param *param)
{
	*param = (struct sched_param){ .sched_priority = attr->priority };
	return 0;
}

int hd_pthread_attr_setschedparam(hd_pthread_attr_t *attr, const struct sched_param *param)
{
	if (!hd__posix_priority_is_valid(attr->policy, param->sched_priority))
		return EINVAL;
	attr->priority = param->sched_priority;
	return 0;
}

int hd_pthread_attr_getschedpolicy(const hd_pthread_attr_t *attr, int *policy)
{
	*policy = attr->policy;
	return 0;
}

int hd_pthread_attr_setschedpolicy(hd_pthread_attr_t *attr, int policy)
{
	if (hd__posix_policy(policy) == HD_POLICY_DEFAULT)
		return EINVAL;
	attr->policy = policy;
	return 0;
}

int hd_pthread_attr_getscope(const hd_pthread_attr_t *attr, int *scope)
{
	*scope = attr->scope;
	return 0;
}

int hd_pthread_attr_setscope(hd_pthread_attr_t *attr, int scope)
{
	if (scope != PTHREAD_SCOPE_SYSTEM && scope != PTHREAD_SCOPE_PROCESS)
		return EINVAL;
	attr->scope = scope;
	return 0;
}

int hd_pthread_attr_getstack(const hd_pthread_attr_t *attr, void **stack, size_t *size)
{
	*stack = attr->stack;
	*size = attr->stack_size;
	return 0;
}

int hd_pthread_attr_setstack(hd_pthread_attr_t *attr, void *stack, size_t size)
{
	if (size < (size_t)PTHREAD_STACK_MIN)
		return EINVAL;
	attr->stack = stack;
	attr->stack_size = size;
	return 0;
}

int hd_pthread_attr_getstacksize(const hd_pthread_attr_t *attr, size_t *size)
{
	*size = attr->stack_size;
	return 0;
}

int hd_pthread_attr_setstacksize(hd_pthread_attr_t *attr, size_t size)
{
	if (size < (size_t)PTHREAD_STACK_MIN)
		return EINVAL;
	attr->stack_size = size;
	return 0;
}
