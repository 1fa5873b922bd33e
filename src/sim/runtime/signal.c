/* sim/runtime/signal.c - simulated signals: there are none. Takes the place of os/signal.c. */
#include <errno.h>

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

void hd__os_signals_return(void)
{
}

void hd__os_signals_forget(void)
{
}
