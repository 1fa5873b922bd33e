/* headers/headers.c - the public headers as a strict C11 program sees them, and every function that they promise.
 *
 * Compiling it is half of the test, linking it with the shared library the other half: what is declared is exported. */
#include <heddle.h>

typedef void (*any_function)(void);

static const any_function promised[] = {
	(any_function)hd_spawn,
	(any_function)hd_spawn_at,
	(any_function)hd_spawn_with,
	(any_function)hd_self,
	(any_function)hd_yield,
	(any_function)hd_checkpoint,
	(any_function)hd_suspend,
	(any_function)hd_resume,
	(any_function)hd_join,
	(any_function)hd_join_end,
	(any_function)hd_detach,
	(any_function)hd_exit,
	(any_function)hd_fail,
	(any_function)hd_priority,
	(any_function)hd_set_priority,
	(any_function)hd_set_policy,
	(any_function)hd_process_info,
	(any_function)hd_each_process,
	(any_function)hd_waiting_at,
	(any_function)hd_local_get,
	(any_function)hd_local_set,
	(any_function)hd_run,
	(any_function)hd_shutdown,
	(any_function)hd_now,
	(any_function)hd_after,
	(any_function)hd_hold_open,
	(any_function)hd_stats,
	(any_function)hd_semaphore_init,
	(any_function)hd_semaphore_wait,
	(any_function)hd_semaphore_try_wait,
	(any_function)hd_semaphore_signal,
	(any_function)hd_semaphore_is_signaled,
	(any_function)hd_semaphore_critical,
	(any_function)hd_semaphore_signal_from_handler,
	(any_function)hd_sleep,
	(any_function)hd_sleep_until,
};

/* The initialisers are constants, and zeroed memory is as good. */
static struct hd_semaphore one = HD_SEMAPHORE(1), none;
static const struct hd_local local = HD_LOCAL(NULL);
static const struct hd_config config;
static const struct hd_spawn how;

int main(void)
{
	if (hd_semaphore_is_signaled(&none) || !hd_semaphore_is_signaled(&one))
		return 1;
	for (size_t i = 0; i < sizeof promised / sizeof promised[0]; i++)
		if (promised[i] == NULL)
			return 1;
	return local.destroy == NULL && config.workers == 0 && how.name == NULL && HD_SEC(1) == HD_MS(1000) ? 0 : 1;
}
