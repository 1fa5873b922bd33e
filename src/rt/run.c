/* rt/run.c - hd_run: builds the runtime, runs it, takes it down.
 *
 * Owns:      the one struct hd__sched, from the first line of hd_run to the last; nothing of it is left afterwards.
 * Callers:   a plain thread, which becomes the worker. */
#include <errno.h>

#include "rt/rt.h"
#include "sched/gate.h"

#define MAIN_STACK_SIZE ((size_t)8 << 20)

static bool busy; /* a runtime runs, or is being built or taken down; any thread, exchange */

/* After fork the child has only the caller, as a plain thread without a runtime (the parent's memory stays, unused). */
static void in_child(void)
{
	hd__forget_self();
	hd__gate_forget();
	hd__overflow_watch_forget();
	st_rlx(&busy, false);
}

__attribute__((constructor)) static void prepare_for_fork(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

/* Everything that needs no thread. Returns 0 or -errno; take_down undoes what was done. */
static int build(struct hd__sched *sched, const struct hd_config *config, const struct hd__doors *doors)
{
	if (doors != NULL)
		sched->doors = *doors;
	if (sched->doors.clock == NULL)
		sched->doors.clock = &hd__os_clock;
	if (sched->doors.poller == NULL)
		sched->doors.poller = &hd__futex_poller;
	sched->watched = sched->doors.clock == &hd__os_clock; /* nobody can wait for another clock but the poller */
	sched->hooks = (struct hd__hooks){
		.begin = hd__begin,
		.cannot_start = hd__cannot_start,
		.expired = hd__wait_expired,
		.doomed = hd__doomed,
		.idle = hd__idle,
		.stop_asked = hd__stop_asked,
	};
	sched->stop_code = HD__NO_CODE;
	int err = hd__config_resolve(&sched->config, config);
	sched->stack_class = hd__stack_class(sched->config.stack_size);
	if (err == 0)
		err = hd__table_init(&sched->table);
	if (err == 0)
		err = hd__worker_init(&sched->worker, sched);
	return err;
}

static void take_down(struct hd__sched *sched)
{
	hd__worker_fini(&sched->worker);
	hd__table_fini(&sched->table);
}

/* The threads, the gate, the first process; then the worker's life. */
static int live(struct hd__sched *sched, hd_entry main, void *arg)
{
	struct hd_worker *w = &sched->worker;
	size_t stack_size = sched->config.stack_size > MAIN_STACK_SIZE ? sched->config.stack_size : MAIN_STACK_SIZE;
	struct hd__overflow_watch *watch = hd__overflow_watch_start();

	if (watch == NULL)
		return -ENOMEM;
	int err = sched->watched ? hd__watcher_start(sched) : 0;
	if (err == 0) {
		hd__gate_open(sched);
		struct hd_spawn how = { .name = "main", .priority = HD_PRIORITY_USER, .stack_size = stack_size };
		hd_pid pid = hd_spawn_with(&how, main, arg);
		if (pid < 0)
			sched->stop_code = (int)pid;
		hd__worker_run(w);
		hd__stop_finish(w);
		if (sched->watched)
			hd__watcher_stop(sched);
		err = sched->stop_code;
	}
	hd__overflow_watch_stop(watch);
	return err;
}

int hd__run_with(const struct hd_config *config, const struct hd__doors *doors, hd_entry main, void *arg)
{
	if (main == NULL)
		return -EINVAL;
	if (hd__self() != NULL || xchg_acq(&busy, true))
		return -EBUSY;
	int saved = errno;
	struct hd__sched *sched = hd__os_reserve(sizeof *sched, 0);
	int err = -ENOMEM;
	if (sched != NULL) {
		err = build(sched, config, doors);
		if (err == 0)
			err = live(sched, main, arg);
		take_down(sched);
		hd__os_unreserve(sched, sizeof *sched);
	}
	errno = saved;
	st_rel(&busy, false);
	return err;
}

int hd_run(const struct hd_config *config, hd_entry main, void *arg)
{
	return hd__run_with(config, NULL, main, arg);
}

int hd_stats(struct hd_stats *stats)
{
	struct hd__caller caller = hd__call_begin();

	if (caller.sched == NULL)
		return -EPERM;
	struct hd_worker *w = &caller.sched->worker;
	*stats = (struct hd_stats){
		.spawned = ld_rlx(&w->stats.spawned),
		.ended = ld_rlx(&w->stats.ended),
		.switches = ld_rlx(&w->stats.switches),
		.handoffs = ld_rlx(&w->stats.handoffs),
		.preemptions = ld_rlx(&w->stats.preemptions),
		.expired_quanta = ld_rlx(&w->stats.expired_quanta),
		.remote_wakes = ld_rlx(&w->stats.remote_wakes),
		.timeouts = ld_rlx(&w->stats.timeouts),
		.idles = ld_rlx(&w->stats.idles),
		.timers = ld_rlx(&w->timers.count),
		.live_processes = (uint64_t)(ld_rlx(&w->blocks.taken) + ld_rlx(&caller.sched->table.taken)),
	};
	uint64_t from_idle = ld_rlx(&w->stats.from_idle); /* another thread's view of the two may be of different moments */
	stats->direct_switches = stats->switches > from_idle ? stats->switches - from_idle : 0;
	for (unsigned size_class = HD__STACK_MIN_CLASS; size_class <= HD__STACK_MAX_CLASS; size_class++) {
		uint32_t made = ld_rlx(&w->stacks[size_class].made), nfree = ld_rlx(&w->stacks[size_class].nfree);
		stats->made_stacks += made;
		stats->live_stacks += made - nfree;
		stats->cached_stacks += nfree - ld_rlx(&w->stacks[size_class].cold);
	}
	hd__call_end(caller);
	return 0;
}
