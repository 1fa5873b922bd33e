/* sim/runtime/signal.c - simulated signals and children: there are none. Takes the place of os/signal.c, os/preempt.c and os/child.c. */
#include <errno.h>

#include "os/child.h"
#include "os/interrupt.h"
#include "os/preempt.h"
#include "os/signal.h"

int hd__os_signals_await(hd__signals set, bool *first)
{
	(void)set, (void)first;
	return -ENOSYS;
}

void hd__os_signals_block(void)
{
}

int hd__os_signal_take(hd__signals set, siginfo_t *info)
{
	(void)set, (void)info;
	return -ENOSYS;
}

int hd__os_signal_fd(hd__signals set)
{
	(void)set;
	return -ENOSYS;
}

int hd__os_signal_tell(int signal, void (*tell)(void *arg), void *arg)
{
	(void)signal, (void)tell, (void)arg;
	return -ENOSYS;
}

void hd__os_signals_mask(sigset_t *mask)
{
	sigemptyset(mask);
}

void hd__os_signals_set(const sigset_t *mask)
{
	(void)mask;
}

void hd__os_signals_return(void)
{
}

void hd__os_signals_forget(void)
{
}

bool hd__os_preempt_begin(const struct hd__preemption *how)
{
	(void)how;
	return false;
}

void hd__os_preempt_hear(struct hd__thread *thread, int signal)
{
	(void)signal;
	thread->number = (int)hd__os_thread_id();
}

void hd__os_preempt(struct hd__thread *thread)
{
	(void)thread;
}

void hd__os_preempt_end(void)
{
}

void hd__os_thread_punctual(void)
{
}

int64_t hd__os_thread_cpu_time(int id)
{
	(void)id;
	return 0;
}

void hd__os_interrupt_forget(void)
{
}

pid_t hd__os_spawn(const struct hd__program *p)
{
	(void)p;
	return -ENOSYS;
}

int hd__os_child_pipe(bool reads, int *mine, int *its)
{
	(void)reads, (void)mine, (void)its;
	return -ENOSYS;
}

int hd__os_waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	(void)type, (void)id, (void)info, (void)options;
	return -ENOSYS;
}

int hd__os_pidfd(pid_t pid)
{
	(void)pid;
	return -ENOSYS;
}

pid_t hd__os_group(void)
{
	return 1;
}

int hd__os_kill(pid_t pid, int signal)
{
	(void)pid, (void)signal;
	return -ENOSYS;
}
