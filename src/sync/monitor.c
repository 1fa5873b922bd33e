/* sync/monitor.c - condition variables, and monitors, which are a mutex and one of them.
 *
 * Owns:       struct hd_condition, struct hd_monitor.
 * Invariant:  a signalled waiter does not wake before it has the mutex, or (a mutex without an order) may try for it: the
 *             signaller, which has claimed its record, puts that into the mutex's queue. Its deadline and cancels do not end
 *             this wait.
 * Locking:    the condition's lock, then the mutex's: the first is held until the waiter is in the queue, so that a signaller
 *             which takes the free mutex cannot miss it.
 * Callers:    a process or a plain thread. */
#include <errno.h>
#include <heddle/monitor.h>

#include "sync/sync.h"

/* The mutex that x gave up. */
static struct hd_mutex *mutex_of(const struct hd_waiter *x)
{
	return (struct hd_mutex *)((char *)(uintptr_t)x->owner - offsetof(struct hd_mutex, owner));
}

static void pass_on(struct hd_worker *w, struct hd_waiter *x)
{
	hd__mutex_pass_to(w, mutex_of(x), x);
}

int hd_condition_wait(struct hd_condition *c, struct hd_mutex *m, hd_time until)
{
	struct hd_worker *w;
	struct hd__ranked x = { .waiter = { .owner = &m->owner, .rules = HD__HEEDS_LATER } };
	struct hd_waiter *next;

	if (!hd_mutex_is_mine(m))
		return -EPERM;
	int err = hd__begin_wait(&w, until);
	if (err != 0)
		return err;
	if (until <= 0) {
		hd__leave_quietly(w);
		return -ETIMEDOUT; /* the mutex is not given up for a mere try */
	}
	x.waiter.data = (void *)(intptr_t)hd__owner_self(w);
	hd__waitq_lock(&c->waiters);
	unsigned depth = x.waiter.number = hd__mutex_release(w, m, &next);
	if (next != NULL)
		hd__unpark_claimed(w, next); /* enqueues `next`; does not switch */
	err = hd__park_as(w, &x.waiter, &c->waiters, until, HD_WAIT_CONDITION, NULL);
	if (err == 0)
		hd__mutex_passed(m, depth);
	else
		hd__mutex_reenter(m, depth);
	if (err == -ECANCELED)
		hd__heed(); /* does not return if the caller must end; it owns the mutex then */
	return err;
}

int hd_condition_signal(struct hd_condition *c)
{
	struct hd_worker *w = hd__enter_call();

	hd__waitq_lock(&c->waiters);
	struct hd_waiter *x = hd__waitq_claim(w, &c->waiters, HD__GRANTED);
	hd__waitq_unlock(&c->waiters);
	if (x != NULL)
		pass_on(w, x);
	hd__leave_call(w);
	return 0;
}

int hd_condition_signal_all(struct hd_condition *c)
{
	struct hd_worker *w = hd__enter_call();

	hd__waitq_lock(&c->waiters);
	hd__waitq_serve_all(w, &c->waiters, HD__GRANTED, pass_on);
	hd__leave_call(w);
	return 0;
}

void hd_monitor_init(struct hd_monitor *m, unsigned flags)
{
	*m = (struct hd_monitor){ .mutex = { .flags = (unsigned char)flags } };
}

int hd_monitor_enter(struct hd_monitor *m, hd_time until)
{
	return hd_mutex_lock(&m->mutex, until);
}

int hd_monitor_exit(struct hd_monitor *m)
{
	return hd_mutex_unlock(&m->mutex);
}

int hd_monitor_critical(struct hd_monitor *m, void (*fn)(void *arg), void *arg, hd_time until)
{
	return hd_mutex_critical(&m->mutex, fn, arg, until);
}

int hd_monitor_wait(struct hd_monitor *m, struct hd_condition *c, hd_time until)
{
	return hd_condition_wait(c != NULL ? c : &m->changed, &m->mutex, until);
}

int hd_monitor_wait_while(struct hd_monitor *m, struct hd_condition *c, bool (*is_so)(void *arg), void *arg, hd_time until)
{
	if (!hd_mutex_is_mine(&m->mutex))
		return -EPERM;
	if (hd__is_duration(until))
		return -EINVAL;
	while (is_so(arg)) {
		int err = hd_monitor_wait(m, c, until);
		if (err == -ETIMEDOUT && !is_so(arg))
			return 0; /* the last look counts */
		if (err != 0)
			return err;
	}
	return 0;
}

int hd_monitor_signal(struct hd_monitor *m, struct hd_condition *c)
{
	return hd_mutex_is_mine(&m->mutex) ? hd_condition_signal(c != NULL ? c : &m->changed) : -EPERM;
}

int hd_monitor_signal_all(struct hd_monitor *m, struct hd_condition *c)
{
	return hd_mutex_is_mine(&m->mutex) ? hd_condition_signal_all(c != NULL ? c : &m->changed) : -EPERM;
}
