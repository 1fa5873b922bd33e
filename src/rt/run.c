/* rt/run.c - hd_run: builds the runtime, runs it, takes it down.
 *
 * Owns:      the one struct hd__sched, from the first line of hd_run to the last; nothing of it is left afterwards.
 * Callers:   a plain thread, which becomes the first worker. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/variable.h"
#include "io/fd.h"
#include "io/pool.h"
#include "io/ring.h"
#include "os/interrupt.h"
#include "os/preempt.h"
#include "os/signal.h"
#include "os/tls.h"
#include "port/port.h"
#include "rt/rt.h"
#include "sched/gate.h"
#include "sched/preempt.h"
#include "sched/record.h"
#include "signal/signal.h"
#include "sim/sim.h"
#include "sim/threads.h"
#include "sync/sync.h"
#include "when/when.h"

#define WAKE_COST HD_US(50) /* until it has been measured */
#define PATIENCE 4

static sigset_t usual_mask; /* of the thread that called hd_run; its processes' code runs with this on every worker */
static bool busy;	    /* a runtime runs, or is being built or taken down; any thread, exchange */

/* After fork the child has only the caller, as a plain thread without a runtime (the parent's memory stays, unused). If a process forked,
 * the child owns what that process owned. */
static void in_child(void)
{
	struct hd_worker *w = hd__self();

	if (w != NULL)
		hd__os_thread_set_id(-hd__pid(&w->sched->table, w->current)); /* hd__owner_self */
	hd__set_self(NULL);
	hd__forks++;
	struct hd__sched *parents = hd__gate_forget();
	if (parents != NULL) {
		hd__io_forget(parents);
		hd__ports_forget(parents);
	}
	hd__depot_forget();
	hd__pool_forget();
	hd__os_interrupt_forget();
	hd__crash_watch_stop();
	hd__os_preempt_end();
	hd__os_signals_forget();
	hd__quit_watch_stop(NULL);
	hd__inside_shut();
	hd__os_thread_keep_storage();
	hd__os_tls_forget();
	st_rlx(&busy, false);
}

__attribute__((constructor)) static void prepare_for_fork(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

/* A worker's life, on its thread. */
static int work(struct hd_worker *w)
{
	struct hd__signal_stack stack;
	int err = hd__signal_stack_start(&stack);

	hd__os_preempt_hear(&w->thread, w->sched->config.preempt_signal);

	if (err == 0) {
		hd__worker_run(w);
		hd__signal_stack_stop(&stack);
	}
	return err;
}

/* All workers but the first. */
static void *work_beside(void *arg)
{
	struct hd_worker *w = arg;
	struct hd__sched *sched = w->sched;

	if (work(w) != 0)
		hd__stop(sched, -ENOMEM);
	hd__set_idle(w, false);
	return NULL;
}

/* A spare. The watcher has started it, whose mask is another one. If there is no memory for a signal stack, it does without: a stack overflow there is not reported. */
static void *work_as_spare(void *arg)
{
	struct hd_worker *w = arg;

	hd__os_signals_set(&usual_mask);
	if (work(w) != 0) {
		st_rlx(&w->thread.id, 0);
		hd__worker_run(w);
	}
	hd__set_idle(w, false);
	return NULL;
}

static int start_spare(struct hd_worker *w)
{
	char name[32];

	snprintf(name, sizeof name, "heddle-spare-%u", w->index - w->sched->nregular);
	int err = hd__os_thread_start(&w->thread, name, false, work_as_spare, w);
	if (err == 0)
		add_acq_rel(&w->sched->threads,
			    1); /* afterwards: as long as it is not counted it is a strange one, and there is no verdict */
	return err;
}

/* Everything that needs no thread. Returns 0 or -errno; take_down undoes what was done. */
static int build(struct hd__sched *sched, const struct hd_config *config, const struct hd__doors *doors)
{
	sched->config = *config;
	sched->stack_class = hd__stack_class(config->stack_size);
	sched->stop_code = HD__NO_CODE;
	sched->thread = hd__os_thread_id();
	if (doors != NULL)
		sched->doors = *doors;
	if (sched->doors.clock == NULL)
		sched->doors.clock = &hd__os_clock;
	if (sched->doors.poller == NULL)
		sched->doors.poller = &hd__epoll_poller;
	sched->watched = sched->doors.clock == &hd__os_clock; /* only the poller can wait for another clock */
	bool is_virtual = sched->doors.at_call != NULL;
	sched->nworkers = sched->nregular = is_virtual ? 1 : config->workers;
	sched->threads = sched->nregular;
	sched->room = sched->nregular + (sched->watched && !is_virtual ? (unsigned)config->spares : 0);
	sched->hooks = (struct hd__hooks){
		.begin = hd__begin,
		.turn = hd__machine_turn,
		.behave = hd__behave,
		.behaviour_boost = hd__behaviour_boost,
		.cannot_start = hd__cannot_start,
		.expired = hd__wait_expired,
		.stalled = hd__wait_stalled,
		.after_is_live = hd__after_is_live,
		.after_due = hd__after_due,
		.unwind = hd__unwind,
		.learn = hd__wait_learn,
		.tls_of = hd__own_tls_of,
		.find_boost = hd__find_boost,
		.boosts = hd__boosts,
		.loans_end = hd__loans_end,
		.blocked = hd__circle_look,
		.owner_ended = hd__owner_ended,
		.holder_waits = hd__holder_waits,
		.idle = hd__idle,
		.over = hd__stop_if_over,
		.waits_for = hd__waits_for,
		.quit = hd__quit,
		.worker_blocked = hd__worker_blocked,
		.look = hd__look,
		.start_spare = start_spare,
		.fd_case = &hd__fd_case,
		.receive_case = &hd__receive_case,
		.spawn_tied = hd__spawn_tied,
		.call_refused = hd__call_refused,
	};
	int err = hd__config_quit(&sched->quit);
	sched->calm = hd__is_crowd(sched) ? hd__os_barrier_init() : 0;
	sched->wake_cost = WAKE_COST;
	sched->patience = PATIENCE;
	hd__board_init(&sched->board);
	for (unsigned size_class = HD__STACK_MIN_CLASS; size_class <= HD__STACK_MAX_CLASS; size_class++)
		hd__stacks_init(&sched->stacks[size_class], size_class, sched->room);
	sched->pool = hd__pool_new(config->blocking_threads);
	if (err == 0)
		err = sched->pool != NULL ? hd__table_init(&sched->table) : -ENOMEM;
	if (err == 0)
		err = hd__loans_init(sched);
	if (err == 0)
		err = hd__trace_configure(sched);
	for (unsigned i = 0; err == 0 && i < sched->nregular; i++)
		err = hd__worker_init(&sched->workers[i], sched, i);
	return err;
}

static void take_down(struct hd__sched *sched)
{
	hd__io_drop(sched);
	hd__signal_ports_drop(sched);
	hd__afters_drop(sched);
	hd__letters_drop_left(sched);
	hd__names_drop(sched);
	for (unsigned i = 0; i < sched->room && sched->workers[i].sched != NULL;
	     i++) { /* also one whose thread could not be started */
		hd__letters_fini(&sched->workers[i].letters);
		hd__spares_fini(&sched->workers[i].spares);
		hd__worker_fini(&sched->workers[i]);
	}
	hd__trace_end(sched);
	hd__depot_trim();
	for (unsigned size_class = HD__STACK_MIN_CLASS; size_class <= HD__STACK_MAX_CLASS; size_class++)
		hd__stacks_fini(&sched->stacks[size_class]);
	hd__loans_fini(sched);
	hd__table_fini(&sched->table);
	if (sched->pool != NULL)
		hd__pool_end(sched->pool); /* last: its threads may use stacks that were kept */
}

struct first {
	hd_entry main;
	void *arg;
	bool pinned;
};

/* The first process begins on the thread that called hd_run, whatever other workers would take. */
static void *begin_first(void *arg)
{
	const struct first first = *(struct first *)arg;

	hd_unpin();
	if (!first.pinned)
		hd_unpin();
	return first.main(first.arg);
}

/* The threads, the gate, the first process; then the workers' lives. */
static int live(struct hd__sched *sched, hd_entry main, void *arg)
{
	size_t stack_size = sched->config.stack_size > HD__MAIN_STACK_SIZE ? sched->config.stack_size : HD__MAIN_STACK_SIZE;
	struct hd_spawn how = { .name = "main", .priority = HD_PRIORITY_USER, .stack_size = stack_size, .pinned = true };
	struct first first = { main, arg, sched->config.pinned };
	unsigned started = 1;

	hd__os_signals_mask(&usual_mask);
	/* The first process counts before anything asks whether all have ended. */
	hd_pid pid = hd__spawn_first(&sched->workers[0], &how, begin_first, &first);
	int err = pid < 0 ? (int)pid : sched->watched ? hd__watcher_start(sched) : 0;
	if (err != 0)
		return err;
	hd__crash_watch_start();
	hd__quit_watch_start(sched);
	hd__inside_open(sched);
	hd__gate_open(sched); /* before any worker can run the first process */
	for (; started < sched->nregular; started++) {
		char name[32];
		snprintf(name, sizeof name, "heddle-%u", started);
		err = hd__os_thread_start(&sched->workers[started].thread, name, true, work_beside, &sched->workers[started]);
		if (err != 0)
			break;
	}
	if (err != 0)
		hd__stop(sched, err);
	if (work(&sched->workers[0]) != 0) {
		hd__stop(sched, -ENOMEM);
		hd__worker_run(&sched->workers[0]);
	}
	hd__lock(&sched->starting); /* the watcher may be starting one this moment */
	sched->full = true;
	hd__unlock(&sched->starting);
	for (unsigned i = 1; i < started; i++)
		hd__os_thread_join(&sched->workers[i].thread);
	for (unsigned i = sched->nregular; i < hd__workers(sched); i++)
		hd__os_thread_join(&sched->workers[i].thread);
	if (sched->watched)
		hd__watcher_stop(sched);
	hd__preempt_end(sched);
	hd__pool_forsake(sched);
	hd__rings_finish(sched);
	hd__stop_finish(sched);
	hd__learn(sched); /* what all processes did */
	hd__crash_watch_stop();
	hd__os_signals_return(); /* before SIGQUIT goes back: a process may have taken it after the report had */
	hd__quit_watch_stop(sched);
	hd__inside_shut();
	return sched->stop_code;
}

static int run(const struct hd_config *config, const struct hd__doors *doors, hd_entry main, void *arg)
{
	size_t size = sizeof(struct hd__sched) + (config->workers + (size_t)config->spares) * sizeof(struct hd_worker);
	struct hd__sched *sched = hd__os_reserve(size, 0);

	if (sched == NULL)
		return -ENOMEM;
	int err = build(sched, config, doors);
	if (err == 0 && doors != NULL && doors->begun != NULL)
		doors->begun(sched);
	if (err == 0)
		err = live(sched, main, arg);
	hd__trace_write(sched);
	if (doors != NULL && doors->ended != NULL && !doors->ended(sched, err))
		return err;
	take_down(sched);
	hd__os_unreserve(sched, size);
	return err;
}

int hd__run_with(const struct hd_config *given, const struct hd__doors *doors, hd_entry main, void *arg)
{
	struct hd_config config;

	if (main == NULL)
		return -EINVAL;
	if (hd__self() != NULL || xchg_acq(&busy, true))
		return -EBUSY;
	int saved = errno;
	int err = hd__config_resolve(&config, given);
	if (err == 0)
		err = run(&config, doors, main, arg);
	errno = saved;
	st_rel(&busy, false);
	return err;
}

/* As many virtual workers as there would be real ones; but not as many as the machine has CPUs. */
static int simulate(const struct hd_config *given, hd_entry main, void *arg)
{
	struct hd_config config = given != NULL ? *given : (struct hd_config){ 0 };
	bool said = config.workers != 0 || (!config.fixed && hd__variable("HEDDLE_WORKERS") != NULL);

	if (!said)
		config.workers = HD__SIM_WORKERS;
	return hd__run_with(&config, hd__sim_doors(!said), main, arg);
}

int hd_run(const struct hd_config *config, hd_entry main, void *arg)
{
	if (unlikely(hd__self() == NULL && !hd__sim_threads && hd__sim_begin()))
		return simulate(config, main, arg);
	return hd__run_with(config, NULL, main, arg);
}

int hd_stats(struct hd_stats *stats)
{
	struct hd__caller caller = hd__call_begin();

	if (caller.sched == NULL)
		return -ENXIO;
	struct hd__sched *sched = caller.sched;
	*stats = (struct hd_stats){
		.workers = sched->config.workers, /* virtual ones too */
		.spawned = ld_rlx(&sched->sent),
		.spares = hd__workers(sched) - sched->nregular,
		.spares_active = hd__spares_active(sched),
		.handovers = ld_rlx(&sched->handovers),
		.live_processes = (uint64_t)ld_rlx(&sched->table.taken),
	};
	uint64_t from_idle = 0, time = 0;
	hd_time now = hd__clock(sched);
	for (unsigned i = 0; i < hd__workers(sched); i++) {
		struct hd_worker *w = &sched->workers[i];
		from_idle += ld_rlx(&w->stats.from_idle);
		stats->spawned += ld_rlx(&w->stats.spawned);
		stats->ended += ld_rlx(&w->stats.ended);
		stats->switches += ld_rlx(&w->stats.switches);
		stats->handoffs += ld_rlx(&w->stats.handoffs);
		stats->preemptions += ld_rlx(&w->stats.preemptions);
		stats->forced += ld_rlx(&w->stats.forced);
		stats->expired_quanta += ld_rlx(&w->stats.expired_quanta);
		stats->remote_wakes += ld_rlx(&w->stats.remote_wakes);
		stats->timeouts += ld_rlx(&w->stats.timeouts);
		stats->idles += ld_rlx(&w->stats.idles);
		stats->wakes += ld_rlx(&w->stats.woken);
		stats->steals += ld_rlx(&w->stats.steals);
		stats->stolen += ld_rlx(&w->stats.stolen);
		stats->timers += ld_rlx(&w->timers.count);
		stats->idle_time += (uint64_t)hd__idle_time(w, now);
		time += (uint64_t)(now - w->begun);
		stats->live_processes += (uint64_t)ld_rlx(&w->blocks.taken);
		for (unsigned size_class = HD__STACK_MIN_CLASS; size_class <= HD__STACK_MAX_CLASS; size_class++) {
			stats->cached_stacks += ld_rlx(&w->stacks[size_class].count);
			stats->live_stacks -= ld_rlx(&w->stacks[size_class].count);
		}
	}
	stats->busy_time = time > stats->idle_time ? time - stats->idle_time : 0;
	/* another thread's view of two counters may be of different moments */
	stats->direct_switches = stats->switches > from_idle ? stats->switches - from_idle : 0;
	for (unsigned size_class = HD__STACK_MIN_CLASS; size_class <= HD__STACK_MAX_CLASS; size_class++) {
		struct hd__stacks *s = &sched->stacks[size_class];
		uint32_t made = ld_rlx(&s->made), nfree = ld_rlx(&s->nfree);
		stats->made_stacks += made;
		stats->live_stacks += made - nfree;
		stats->cached_stacks += nfree - ld_rlx(&s->cold);
	}
	stats->live_ports = (uint64_t)hd__ports_live();
	stats->live_messages = (uint64_t)hd__letters_live(sched);
	stats->live_cowns = hd__cowns_live();
	stats->behaviours = hd__behaviours_made(sched, &stats->live_behaviours);
	hd__call_end(caller);
	return 0;
}
