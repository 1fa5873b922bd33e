/* models/idle.pml - workers that have nothing to run: idle bits, the searcher's token, thieves, the watcher.
 *
 * Models:     hd__take_half, hd__unvisit, hd__is_surplus, hd__leave_slowly (sched/lane.c), hd__claim_idle, hd__wake_searcher
 *             (sched/board.c), hd__search, find_something, hd__end_search (sched/search.c), idle, doze, hd__worker_run (sched/worker.c),
 *             hd__take_news (sched/sched.c), look_into_lane, watch (sched/watcher.c), apply_nudge (life/steer.c).
 * Scenario:   three workers. Worker 0 runs a process; another one, and process S, are ready behind it. The others have nothing. A plain
 *             thread posts a process to worker 1, and a request to S. A runner may wait for ever, or become deaf: it comes by no
 *             safe point any more. Levels play no part: all are equal.
 * Holds:      a request finds S at home, in the run queue there or running. When nothing moves any more, every process is in one
 *             place, no worker sleeps while one that may move is ready in any lane, every note was applied, unless it is for a
 *             process that runs and is deaf.
 *
 * A lane is entered and left in one step: what a worker does inside is seen by others only afterwards. A statement, a d_step and an atomic block are one access each to what threads share. How long a worker searches, and how soon it
 * is woken for surplus, is left open; the watcher looks as long as there is something to see for it. */

#ifndef WAITS
#define WAITS 1
#endif
#ifndef DEAF
#define DEAF 1
#endif

#define WORKERS 3
#define NONE WORKERS
#define BIT(n) (1 << (n))
#define OTHER(w, k) (((w) + (k)) % WORKERS)

#define ASLEEP 1
#define INBOX 2
#define BETTER 4
#define SEARCH 8

/* Where S is. */
#define QUEUE(v) (v)
#define RUNS_ON(v) (WORKERS + (v))
#define IN_HANDS (2 * WORKERS)

byte attention[WORKERS];
byte idle;	   /* board.idle, a set */
bool searching;	   /* board.searching */
byte queue[WORKERS]; /* how many are ready, but for S */
byte runs[WORKERS];  /* how many run, but for S: 0 or 1 */
bool deaf[WORKERS];
byte in_hands;	     /* how many a thief has in its hands */
bool spawned[WORKERS]; /* the note with a new process is in this inbox */

byte s = QUEUE(0), home; /* of S */
bool nudged;		 /* S has a request on its way */
byte nudge = NONE;	 /* in whose inbox its note is */

byte waits = WAITS, may_be_deaf = DEAF;
byte alive = 2; /* for the check alone: all there are, but for S */

#define READY(v) (queue[v] > 0 || s == QUEUE(v)) /* runq.highest != 0 */
#define IDLE(v) (runs[v] == 0 && s != RUNS_ON(v)) /* board.running says NOBODY */

/* Inside the lane of v: the notes in its inbox are applied, by its worker or by the watcher (`visitor`). */
#define APPLY_NOTES(v, visitor)                                                                     \
	if                                                                                          \
	:: spawned[v] -> spawned[v] = false; queue[v]++                                             \
	:: else                                                                                     \
	fi;                                                                                         \
	if                                                                                          \
	:: nudge == v && visitor && s == RUNS_ON(v) /* apply_nudge posts it anew */                 \
	:: nudge == v && !(visitor && s == RUNS_ON(v)) ->                                           \
		assert(home == v && (s == QUEUE(v) || s == RUNS_ON(v))); nudge = NONE; nudged = false \
	:: else                                                                                     \
	fi

/* hd__claim_idle */
#define CLAIM                                                            \
	if                                                               \
	:: idle & BIT(0) -> x = 0                                        \
	:: !(idle & BIT(0)) && idle & BIT(1) -> x = 1                    \
	:: !(idle & (BIT(0) | BIT(1))) && idle & BIT(2) -> x = 2         \
	:: else -> x = NONE                                              \
	fi;                                                              \
	if :: x != NONE -> idle = idle & ~BIT(x) :: else fi

/* hd__wake_searcher; `x` is the caller's. */
inline wake_searcher()
{
	atomic {
		if
		:: !searching && idle -> searching = true; CLAIM /* otherwise nothing is left of it */
		:: else -> x = NONE
		fi
	}
	atomic { if :: x != NONE -> attention[x] = attention[x] | SEARCH; x = NONE :: else fi } /* hd__raise */
}

/* hd__take_half, inside the lane of v: every second one, the first included. S may be among them, or not. */
#define TAKE_HALF                                                                    \
	in_hands = (queue[v] + 1) / 2;                                               \
	queue[v] = queue[v] - in_hands;                                              \
	taken = in_hands;                                                            \
	if                                                                           \
	:: s == QUEUE(v) && !nudged -> s = IN_HANDS; home = w; taken++ /* hd__move_home */ \
	:: true                                                                      \
	fi
/* What was taken is pushed, inside the lane of w. */
#define PUSH_TAKEN                          \
	queue[w] = queue[w] + in_hands;     \
	in_hands = 0;                       \
	if :: s == IN_HANDS -> s = QUEUE(w) :: else fi

#define TAKE_NEWS if :: attention[w] & INBOX -> APPLY_NOTES(w, false) :: else fi

/* hd__choose */
#define RUN_NEXT                                     \
	if                                           \
	:: queue[w] > 0 -> queue[w]--; runs[w] = 1   \
	:: s == QUEUE(w) -> s = RUNS_ON(w)           \
	fi

proctype worker(byte w)
{
	byte k = 1, v, x = NONE, taken;
	bool searcher;

	if
	:: !IDLE(w) -> goto compute
	:: else
	fi;

own_stack: /* hd__worker_run, inside the lane */
	atomic {
		TAKE_NEWS;
		searcher = searcher || attention[w] & SEARCH;
		attention[w] = 0;
		if
		:: READY(w) -> /* hd__end_search, hd__run_next */
			if :: searcher -> searcher = false; searching = false :: else fi;
			RUN_NEXT;
			goto compute
		:: else
		fi
	}
	/* idle, hd__search */
	atomic {
		if
		:: attention[w] -> goto own_stack
		:: else
		fi;
		if
		:: searcher
		:: !searcher && !searching -> searching = true; searcher = true
		:: !searcher && searching /* beside the one that has the token */
		:: !searcher -> goto sleep /* it is out of luck, or enough search */
		fi
	}
	do /* find_something */
	:: atomic { k < WORKERS ->
			v = OTHER(w, k);
			k++;
			if
			:: READY(v) -> TAKE_HALF;
#ifndef BREAK_HANDS_OUTSIDE
				PUSH_TAKEN
#endif
			:: else -> v = 0
			fi
		}
		/* hd__take_half: w enters its own lane first, and so nothing can come between */
#ifdef BREAK_HANDS_OUTSIDE /* hd__take_half: w's own lane entered only after v's was left */
		if
		:: taken -> atomic { PUSH_TAKEN }
		:: else
		fi;
#endif
		if
		:: taken -> break
		:: else
		fi
	:: k == WORKERS -> break
	od;
	atomic { k = 1; v = 0;
		if :: searcher -> searcher = false; searching = false :: else fi /* hd__end_search */
	}
	if
	:: taken ->
		if
		:: taken > 1 -> taken = 0; wake_searcher()
		:: else -> taken = 0
		fi;
		goto own_stack
	:: else
	fi;

sleep:
	idle = idle | BIT(w); /* hd__set_idle */
	atomic { if :: attention[w] == 0 -> attention[w] = ASLEEP :: else fi } /* doze */
end_asleep:
	atomic { attention[w] != ASLEEP -> idle = idle & ~BIT(w) }
	goto own_stack;

compute:
end_computes:
	if
	/* waits, for ever */
	:: atomic { waits > 0 && runs[w] -> waits--; runs[w] = 0; alive--;
			if
			:: READY(w) -> RUN_NEXT
			:: else -> goto own_stack
			fi
		}
	/* comes by no safe point any more */
	:: atomic { may_be_deaf > 0 -> may_be_deaf--; deaf[w] = true; goto end_deaf }
	/* comes by a safe point: hd__attend */
	:: atomic { attention[w] ->
			TAKE_NEWS;
			if
			:: attention[w] & SEARCH ->
#ifdef BREAK_RUNNER_KEEPS_TOKEN /* hd__take_news: w->search.on is set, and nothing ends it as long as w has something to run */
				searcher = true
#else
				searching = false
#endif
			:: else
			fi;
			attention[w] = 0
		}
	/* hd__is_surplus, hd__leave_slowly, after a few calls */
	:: READY(w) && idle && !searching -> wake_searcher()
	fi;
	goto compute;

end_deaf:
	false
}

#define HAS_NOTES(v) (spawned[v] || (nudge == v && s != RUNS_ON(v))) /* that a visitor can apply */
#define DEAF_TO_NOTES(v) (attention[v] & INBOX && !(attention[v] & ASLEEP) && HAS_NOTES(v))
#define DEAF_TO_SEARCH(v) (deaf[v] && attention[v] & SEARCH)

/* The watcher: look_into_lane, and the searcher's token. It finds a worker deaf that has not come by a safe point for a while, for
 * whatever reason. */
proctype watcher()
{
	byte v, x = NONE;

end_looks:
	do
	:: atomic { idle && (DEAF_TO_NOTES(0) || DEAF_TO_NOTES(1) || DEAF_TO_NOTES(2)) ->
			if
			:: DEAF_TO_NOTES(0) -> v = 0
			:: DEAF_TO_NOTES(1) -> v = 1
			:: DEAF_TO_NOTES(2) -> v = 2
			fi;
			APPLY_NOTES(v, true) /* inside the lane of v */
		}
		atomic { if :: READY(v) && IDLE(v) -> attention[v] = attention[v] | BETTER :: else fi; v = 0 } /* hd__unvisit */
#ifndef BREAK_WATCHER_IS_BLIND /* look_into_lane: no hd__wake_searcher */
	:: atomic { idle && !searching && ((READY(0) && !IDLE(0)) || (READY(1) && !IDLE(1)) || (READY(2) && !IDLE(2))) }
		wake_searcher()
#endif
#ifndef BREAK_DEAF_KEEPS_TOKEN /* watch: board.searching is not taken down when it was up at two looks */
	:: atomic { idle && searching && (DEAF_TO_SEARCH(0) || DEAF_TO_SEARCH(1) || DEAF_TO_SEARCH(2)) -> searching = false }
		/* whichever worker has it by now: two may search; HD__SEARCH stays up */
#endif
	od
}

/* A plain thread. */
proctype thread()
{
	byte to;

	alive++;
	spawned[1] = true; /* hd__post */
	attention[1] = attention[1] | INBOX;
	nudged = true; /* change_word; then its home is constant */
	to = home;
	nudge = to; /* hd__post */
	attention[to] = attention[to] | INBOX
}

/* When nothing moves any more. */
proctype quiet()
{
	byte v;

	timeout;
	d_step {
		for (v : 0 .. WORKERS - 1) {
			assert(!spawned[v] || (deaf[v] && !idle));
			assert(deaf[v] || attention[v] == 0 || attention[v] == ASLEEP);
			assert(!READY(v) || !idle);
			assert(!READY(v) || !IDLE(v));
		}
		assert(!nudged || (deaf[home] && (s == RUNS_ON(home) || !idle)));
		assert(in_hands == 0 && s != IN_HANDS);
		assert(queue[0] + queue[1] + queue[2] + runs[0] + runs[1] + runs[2] == alive)
	}
}

init
{
	atomic {
		runs[0] = 1; queue[0] = 1;
		run worker(0); run worker(1); run worker(2); run watcher(); run thread(); run quiet()
	}
}
