/* headers/headers.c - the public headers as a strict C11 program sees them, and every function that they promise.
 *
 * Compiling it is half of the test, linking it with the shared library the other half: what is declared is exported. */
#include <heddle.h>

typedef void (*any_function)(void);

static const any_function promised[] = {
	(any_function)hd_spawn,
	(any_function)hd_spawn_at,
	(any_function)hd_spawn_with,
	(any_function)hd_spawn_how,
	(any_function)hd_self,
	(any_function)hd_yield,
	(any_function)hd_checkpoint,
	(any_function)hd_pin,
	(any_function)hd_unpin,
	(any_function)hd_errno,
	(any_function)hd_suspend,
	(any_function)hd_resume,
	(any_function)hd_join,
	(any_function)hd_join_end,
	(any_function)hd_detach,
	(any_function)hd_exit,
	(any_function)hd_fail,
	(any_function)hd_terminate,
	(any_function)hd_kill,
	(any_function)hd_priority,
	(any_function)hd_set_priority,
	(any_function)hd_set_policy,
	(any_function)hd_process_info,
	(any_function)hd_each_process,
	(any_function)hd_waiting_at,
	(any_function)hd_local_get,
	(any_function)hd_local_set,
	(any_function)hd_error,
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
	(any_function)hd_barrier_init,
	(any_function)hd_barrier_wait,
	(any_function)hd_cancel,
	(any_function)hd_set_cancel_state,
	(any_function)hd_set_cancel_type,
	(any_function)hd_test_cancel,
	(any_function)hd_cancel_clear,
	(any_function)hd_cleanup_push,
	(any_function)hd_cleanup_pop,
	(any_function)hd_event_init,
	(any_function)hd_event_wait,
	(any_function)hd_event_try_wait,
	(any_function)hd_event_set,
	(any_function)hd_event_reset,
	(any_function)hd_event_is_set,
	(any_function)hd_group_spawn,
	(any_function)hd_group_wait,
	(any_function)hd_group_cancel,
	(any_function)hd_monitor_init,
	(any_function)hd_monitor_enter,
	(any_function)hd_monitor_exit,
	(any_function)hd_monitor_critical,
	(any_function)hd_monitor_wait,
	(any_function)hd_monitor_wait_while,
	(any_function)hd_monitor_signal,
	(any_function)hd_monitor_signal_all,
	(any_function)hd_condition_wait,
	(any_function)hd_condition_signal,
	(any_function)hd_condition_signal_all,
	(any_function)hd_mutex_init,
	(any_function)hd_mutex_lock,
	(any_function)hd_mutex_try_lock,
	(any_function)hd_mutex_unlock,
	(any_function)hd_mutex_is_mine,
	(any_function)hd_mutex_critical,
	(any_function)hd_once,
	(any_function)hd_once_is_done,
	(any_function)hd_promise_new,
	(any_function)hd_promise_spawn,
	(any_function)hd_promise_spawn_at,
	(any_function)hd_promise_spawn_with,
	(any_function)hd_promise_pid,
	(any_function)hd_promise_else,
	(any_function)hd_promise_retain,
	(any_function)hd_promise_release,
	(any_function)hd_promise_set,
	(any_function)hd_promise_fail,
	(any_function)hd_promise_value,
	(any_function)hd_promise_has_value,
	(any_function)hd_promise_has_failed,
	(any_function)hd_promise_then,
	(any_function)hd_promise_all,
	(any_function)hd_promise_any,
	(any_function)hd_queue_new,
	(any_function)hd_queue_new_ordered,
	(any_function)hd_queue_new_rendezvous,
	(any_function)hd_queue_drop,
	(any_function)hd_queue_put,
	(any_function)hd_queue_next,
	(any_function)hd_queue_try_put,
	(any_function)hd_queue_try_next,
	(any_function)hd_queue_peek,
	(any_function)hd_queue_put_many,
	(any_function)hd_queue_next_many,
	(any_function)hd_queue_close,
	(any_function)hd_queue_is_closed,
	(any_function)hd_queue_length,
	(any_function)hd_rwlock_init,
	(any_function)hd_rwlock_read,
	(any_function)hd_rwlock_write,
	(any_function)hd_rwlock_try_read,
	(any_function)hd_rwlock_try_write,
	(any_function)hd_rwlock_unlock,
	(any_function)hd_select,
	(any_function)hd_select_first,
	(any_function)hd_blocking,
	(any_function)hd_getaddrinfo,
	(any_function)hd_getnameinfo,
	(any_function)hd_tcp_listen,
	(any_function)hd_tcp_connect,
	(any_function)hd_udp_bind,
	(any_function)hd_udp_connect,
	(any_function)hd_unix_listen,
	(any_function)hd_unix_connect,
	(any_function)hd_sock_send_fd,
	(any_function)hd_sock_recv_fd,
	(any_function)hd_sock_port,
	(any_function)hd_sock_peer,
	(any_function)hd_reader_init,
	(any_function)hd_reader_line,
	(any_function)hd_reader_until,
	(any_function)hd_reader_exactly,
	(any_function)hd_reader_peek,
	(any_function)hd_reader_skip,
	(any_function)hd_reader_read,
	(any_function)hd_reader_read_full,
	(any_function)hd_writer_init,
	(any_function)hd_writer_put,
	(any_function)hd_writer_printf,
	(any_function)hd_writer_flush,
	(any_function)hd_writer_clear,
	(any_function)hd_signal_semaphore,
	(any_function)hd_signal_port,
	(any_function)hd_send_after,
	(any_function)hd_send_after_with,
	(any_function)hd_send_every,
	(any_function)hd_send_cancel,
	(any_function)hd_spawn_child,
	(any_function)hd_waitpid,
	(any_function)hd_child_output,
	(any_function)hd_system,
	(any_function)hd_waitgroup_init,
	(any_function)hd_waitgroup_add,
	(any_function)hd_waitgroup_done,
	(any_function)hd_waitgroup_wait,
	(any_function)hd_cown_new,
	(any_function)hd_cown_retain,
	(any_function)hd_cown_release,
	(any_function)hd_cown_weaken,
	(any_function)hd_weak_cown_promote,
	(any_function)hd_weak_cown_release,
	(any_function)hd_reads,
	(any_function)hd_when_n,
	(any_function)hd_when_args_n,
	(any_function)hd_when_batch,
	(any_function)hd_when_promise_n,
	(any_function)hd_when_after_n,
	(any_function)hd_cown_release_early,
	(any_function)hd_cown_failed,
	(any_function)hd_cown_clear,
	(any_function)hd_quiesce,
	(any_function)hd_noticeboard_new,
	(any_function)hd_noticeboard_drop,
	(any_function)hd_noticeboard_publish,
	(any_function)hd_noticeboard_read,
};

/* The initialisers are constants, and zeroed memory is as good. */
static struct hd_semaphore one = HD_SEMAPHORE(1), none;
static struct hd_mutex mutex = HD_MUTEX(HD_INHERIT | HD_BY_PRIORITY);
static struct hd_monitor monitor = HD_MONITOR(0);
static struct hd_condition condition = HD_CONDITION;
static struct hd_rwlock rwlock = HD_RWLOCK(HD_PREFER_WRITERS);
static struct hd_barrier barrier = HD_BARRIER(1);
static struct hd_once once = HD_ONCE;
static struct hd_event event = HD_EVENT(HD_EVENT_SET);
static struct hd_waitgroup waitgroup = HD_WAITGROUP(0);
static struct hd_group group;
static const struct hd_local local = HD_LOCAL(NULL);
static const struct hd_config config;
static const struct hd_spawn how;

int main(void)
{
	errno = EDOM;
	if (*hd_errno() != EDOM)
		return 1;
	if (hd_semaphore_is_signaled(&none) || !hd_semaphore_is_signaled(&one))
		return 1;
	if (hd_mutex_lock(&mutex, HD_FOREVER) != 0 || hd_monitor_enter(&monitor, 0) != 0 ||
	    hd_condition_signal(&condition) != 0)
		return 1;
	if (hd_rwlock_try_read(&rwlock) != 0 || hd_barrier_wait(&barrier, 0) != 1 || hd_once_is_done(&once))
		return 1;
	if (!hd_event_is_set(&event) || hd_waitgroup_wait(&waitgroup, 0) != 0 || group.owner != 0)
		return 1;
	for (size_t i = 0; i < sizeof promised / sizeof promised[0]; i++)
		if (promised[i] == NULL)
			return 1;
	return local.destroy == NULL && config.workers == 0 && how.name == NULL && HD_SEC(1) == HD_MS(1000) ? 0 : 1;
}
