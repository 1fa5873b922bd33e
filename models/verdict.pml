/* models/verdict.pml - the verdict of deadlock: no process can run, and nothing that the runtime knows of can wake one.
 *
 * Models:     hd__idle, judge_locked, all_is_quiet (rt/stop.c), idle, doze, hd__raise, hd__post (sched/worker.c), hd__take_news
 *             (sched/sched.c), look, look_into_lane (sched/watcher.c), hd__unvisit (sched/lane.c).
 * Scenario:   two workers, each with a process that runs and one that waits. A runner grants the wait of the process on the other
 *             worker, which stays there, and is woken by a note; it waits until a deadline, or for ever, a few times in all. The watcher
 *             tells a worker of its deadlines, and visits the lane of one that seemed deaf when the watcher last looked, and may be
 *             idle by now. The program has no other threads.
 * Holds:      when the verdict is given, nothing is ready, running or on its way, and no deadline is waited for. When nothing moves any
 *             more, it has been given.
 *
 * A statement, a d_step and an atomic block are one access each to what threads share. A lane is entered and left in one step, except by the
 * watcher, whose visit is seen to end before it has told the worker. */

#ifndef SLEEPS
#define SLEEPS 1 /* until a deadline */
#endif
#ifndef VISITS
#define VISITS 1
#endif

#define WORKERS 2
#define OTHER(w) (1 - (w))

#define ASLEEP 1
#define INBOX 2
#define ALARM 4
#define BETTER 8

byte attention[WORKERS];
bool idle[WORKERS];     /* board.idle */
bool slept[WORKERS];   /* w->stats.idles has grown since the judge has read it */
bool lane[WORKERS];    /* a visitor is inside */
byte runs[WORKERS];    /* 1: a process runs */
byte ready[WORKERS];   /* in its run queue */
byte waiting[WORKERS]; /* for a grant, without a deadline */
byte heap[WORKERS];    /* deadlines that are waited for: hd__timers_live */
byte notes[WORKERS];   /* wakes in its inbox */
bool verdict;	       /* the lock */
byte visits;	       /* watcher.visits: odd while a visit is on */
bool over;	       /* the verdict has been given */

byte sleeps = SLEEPS;

/* Inside the lane of v. */
#define APPLY_NOTES(v) ready[v] = ready[v] + notes[v]; notes[v] = 0
/* hd__expire: some of them, whose time has come. */
#define EXPIRE(v)                                              \
	if                                                     \
	:: heap[v] > 0 -> heap[v]--; ready[v]++                \
	:: heap[v] > 1 -> heap[v] = heap[v] - 2; ready[v] = ready[v] + 2 \
	:: true                                                \
	fi

/* hd__take_news. */
#define TAKE_NEWS                                              \
	if :: attention[w] & INBOX -> APPLY_NOTES(w) :: else fi; \
	if :: attention[w] & (ALARM | ASLEEP) -> EXPIRE(w) :: else fi; \
	attention[w] = 0

#define QUIET(v) ((attention[v] & ~ASLEEP) == 0 && heap[v] == 0)

proctype worker(byte w)
{
	byte seen;
	bool soon; /* judge_locked answered `now` */

	goto compute;

own_stack: /* hd__worker_run */
	atomic { !lane[w] ->
		TAKE_NEWS;
		if
		:: ready[w] > 0 -> ready[w]--; runs[w] = 1; goto compute
		:: else
		fi
	}
	/* idle */
	if
	:: attention[w] -> goto own_stack
	:: else
	fi;
	slept[w] = true; /* w->stats.idles */
	idle[w] = true;
	/* hd__idle */
	if
	:: over -> goto ended
	:: !over && heap[w] > 0 -> goto sleep
	:: else
	fi;
	atomic { !verdict -> verdict = true }
	/* judge_locked: the second time that it asks whether all is quiet */
#ifndef BREAK_VISIT_UNSEEN /* judge_locked: watcher.visits not looked at */
	seen = visits;
	if
	:: seen % 2 -> verdict = false; seen = 0; soon = true; goto sleep
	:: else
	fi;
#endif
	slept[0] = false;
	slept[1] = false;
	if :: !idle[0] -> goto not_quiet :: else fi;
	if :: !idle[1] -> goto not_quiet :: else fi;
	if :: QUIET(0) :: else -> goto not_quiet fi;
	if :: QUIET(1) :: else -> goto not_quiet fi;
	if :: !idle[0] -> goto not_quiet :: else fi;
	if :: !idle[1] -> goto not_quiet :: else fi;
#ifndef BREAK_IDLES_NOT_COMPARED /* all_is_quiet: whether a worker has gone to sleep meanwhile is not asked */
	if :: slept[0] -> goto not_quiet :: else fi;
	if :: slept[1] -> goto not_quiet :: else fi;
#endif
#ifndef BREAK_VISIT_UNSEEN
	if
	:: visits != seen -> verdict = false; seen = 0; soon = true; goto sleep
	:: else -> seen = 0
	fi;
#endif
	d_step {
		assert(!runs[0] && !runs[1] && !ready[0] && !ready[1] && !notes[0] && !notes[1] && !heap[0] && !heap[1]);
		over = true;
		verdict = false
	}
	atomic { attention[OTHER(w)] = attention[OTHER(w)] | BETTER; goto ended } /* hd__stop tells all */
not_quiet:
	atomic { seen = 0; verdict = false }
sleep: /* doze */
	atomic { if :: attention[w] == 0 -> attention[w] = ASLEEP :: else fi }
end_asleep:
	if
	:: attention[w] != ASLEEP
	:: heap[w] > 0 /* its first deadline has come */
	:: soon
	fi;
	soon = false;
	idle[w] = false; /* hd__set_idle */
	goto own_stack;

compute:
	if
	/* grants the wait of a process on the other worker: hd__post */
	:: atomic { waiting[OTHER(w)] > 0 -> waiting[OTHER(w)]--; notes[OTHER(w)]++ }
		attention[OTHER(w)] = attention[OTHER(w)] | INBOX
	/* waits until a deadline, or for ever */
	:: atomic { sleeps > 0 && !lane[w] -> sleeps--; heap[w]++; runs[w] = 0; goto own_stack }
	:: atomic { !lane[w] -> runs[w] = 0; goto own_stack }
	/* comes by a safe point */
	:: atomic { attention[w] && !lane[w] -> TAKE_NEWS }
	fi;
	goto compute;

ended:
	skip
}

#define SEEMS_DEAF(v) (attention[v] & (INBOX | ALARM) && !(attention[v] & ASLEEP))

proctype watcher()
{
	byte v, n;

end_looks:
	do
	/* look: a busy worker is told of its deadlines */
	:: atomic { heap[0] > 0 && !(attention[0] & (ASLEEP | ALARM)) -> attention[0] = attention[0] | ALARM }
	:: atomic { heap[1] > 0 && !(attention[1] & (ASLEEP | ALARM)) -> attention[1] = attention[1] | ALARM }
	/* look_into_lane: it was deaf */
	:: atomic { n < VISITS && (SEEMS_DEAF(0) || SEEMS_DEAF(1)) ->
			if
			:: SEEMS_DEAF(0) -> v = 0
			:: SEEMS_DEAF(1) -> v = 1
			fi;
			n++
		}
		visits++;
		atomic { !lane[v] -> lane[v] = true; APPLY_NOTES(v); EXPIRE(v) }
		lane[v] = false; /* hd__unvisit */
		atomic { if :: ready[v] > 0 && !runs[v] -> attention[v] = attention[v] | BETTER :: else fi }
		visits++;
		v = 0
	od
}

/* When nothing moves any more. */
proctype quiet()
{
	timeout;
	assert(over)
}

init
{
	atomic {
		runs[0] = 1; runs[1] = 1; waiting[0] = 1; waiting[1] = 1;
		run worker(0); run worker(1); run watcher(); run quiet()
	}
}
