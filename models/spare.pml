/* models/spare.pml - spare workers: seats, who is away, who rests.
 *
 * Models:     mark_away, take_back, tell_spares, take_seat, step_down, hd__spare_settle, hd__spare_begins, hd__spare_gets_up, hd__spare_give, hd__spare_keep_floor,
 *             begin_one, relieve, fill_seats, hd__spare_look (sched/spare.c), hd__some_worker, hd__claim_resting (sched/board.c), hd__worker_run, idle (sched/worker.c).
 * Scenario:   a regular worker and two spares, three processes, all on worker 0 at first. A runner ends, waits and is woken where it has its home, or blocks its worker in
 *             the kernel, and comes back, or does not. One that is back may come by a safe point late, and the watcher may see it compute before that. The watcher finds a
 *             worker blocked, fills seats and relieves workers that are away, while it is needed.
 * Holds:      a process is in one place, and no worker runs two. When nothing moves any more: nothing is ready, each process has ended or is blocked; the workers with a seat that
 *             are not away, and the free seats, are as many as regular workers; if no process is blocked, no seat is free, none is away, and all spares rest.
 *
 * A lane is entered and left in one step; so is what moves from one to another, inside both. A statement, a d_step and an atomic block are one access each to what threads
 * share. An idle worker takes what is ready in any lane: how it hears of that is in idle.pml. Loans, levels and pinned processes are left out. */

#ifndef BLOCKS
#define BLOCKS 2
#endif
#ifndef WAITS
#define WAITS 0
#endif

#define REGULAR 1
#define WORKERS 3
#define PROCESSES 3
#define NONE WORKERS

byte queue[WORKERS];	/* ready there */
bool runs[WORKERS];	/* has a runner */
bool blocked[WORKERS];	/* which is in the kernel */
byte waiting[WORKERS];	/* at home there, for a deadline or the like */
bool seated[WORKERS];	/* floor is 0 */
bool away[WORKERS];	/* board.away */
bool resting[WORKERS];	/* board.resting */
bool idle[WORKERS];	/* board.idle */
bool told[WORKERS];	/* HD__SEAT */
short seats;
byte alive = PROCESSES;
byte blocks = BLOCKS, waits = WAITS;

#define READY (queue[0] + queue[1] + queue[2] > 0)
#define NEEDED (READY && !idle[0] && !idle[1] && !idle[2])
#define FREE(v) (seated[v] && !away[v])

/* hd__some_worker: an idle one, or one with a seat that is not away; a hint. */
#define SOME_WORKER(x)                                            \
	if                                                        \
	:: idle[0] -> x = 0 :: idle[1] -> x = 1 :: idle[2] -> x = 2 \
	:: !(idle[0] || idle[1] || idle[2]) && FREE(0) -> x = 0   \
	:: !(idle[0] || idle[1] || idle[2]) && FREE(1) -> x = 1   \
	:: !(idle[0] || idle[1] || idle[2]) && FREE(2) -> x = 2   \
	:: !(FREE(0) || FREE(1) || FREE(2)) -> x = 0              \
	fi

/* hd__give_away, inside both lanes */
#define GIVE_AWAY(from, to) queue[to] = queue[to] + queue[from]; queue[from] = 0

/* tell_spares: one after the other */
inline tell_spares()
{
#ifndef BREAK_SPARES_UNTOLD /* take_back: no tell_spares */
	atomic { if :: FREE(1) -> told[1] = true :: else fi }
	atomic { if :: FREE(2) -> told[2] = true :: else fi }
#else
	skip
#endif
}

/* take_back */
inline take_back(v)
{
#ifdef BREAK_BACK_BY_LOOK /* hd__end_away: the bit is looked at, and then cleared */
	back = away[v];
	away[v] = false;
#else
	atomic { back = away[v]; away[v] = false } /* the one that clears the bit */
#endif
	if
	:: back ->
		atomic { seats--; if :: seats < 0 -> many = true :: else -> many = false fi }
		if
		:: many -> tell_spares()
		:: else
		fi;
		atomic { back = false; many = false }
	:: else
	fi
}

/* hd__spare_settle, in hd__take_news */
inline settle()
{
	take_back(w);
	if
	:: w >= REGULAR && seated[w] -> atomic { if :: seats < 0 -> seats++; seated[w] = false :: else fi } /* step_down */
	:: else
	fi
}

proctype worker(byte w)
{
	byte x = NONE;
	bool back, many;

own_stack: /* hd__worker_run */
	if
	:: told[w] -> told[w] = false; settle(); goto own_stack
	:: else
	fi;
	if
	:: !seated[w] && queue[w] > 0 -> /* hd__spare_keep_floor */
		atomic { if :: seats > 0 -> seats--; seated[w] = true :: else fi } /* take_seat */
		if
		:: !seated[w] ->
			atomic { SOME_WORKER(x); assert(x != w) }
			atomic { GIVE_AWAY(w, x); x = NONE }
		:: else
		fi;
		goto own_stack
	:: else
	fi;
	if
	:: atomic { seated[w] && queue[w] > 0 -> queue[w]--; runs[w] = true }
		goto compute
	:: atomic { seated[w] && queue[w] == 0 -> idle[w] = true }
		goto sleep
	:: atomic { !seated[w] && queue[w] == 0 -> resting[w] = true }
		goto rest
	:: !seated[w] && queue[w] > 0 -> goto own_stack
	fi;

sleep:
end_asleep: /* it is woken for what is in its lane, or what it may take elsewhere */
	atomic {
		told[w] || READY -> idle[w] = false;
		if
		:: queue[w] == 0 && queue[0] > 0 -> queue[0]--; queue[w]++
		:: queue[w] == 0 && queue[1] > 0 -> queue[1]--; queue[w]++
		:: queue[w] == 0 && queue[2] > 0 -> queue[2]--; queue[w]++
		:: queue[w] > 0 || !READY
		fi
	}
	goto own_stack;

rest:
end_resting:
	told[w] || queue[w] > 0;
	atomic { /* hd__spare_gets_up */
		if
		:: resting[w] -> resting[w] = false
		:: else -> seated[w] = true /* it was claimed: hd__spare_begins */
		fi
	}
	goto own_stack;

compute: /* it has a runner */
	assert(runs[w]);
	if
	:: atomic { runs[w] = false; alive-- } goto own_stack /* ends */
	:: atomic { waits > 0 -> waits--; runs[w] = false; waiting[w]++ } goto own_stack
	:: atomic { blocks > 0 -> blocks--; blocked[w] = true }
end_blocked:	if
		:: blocked[w] = false /* it comes back */
		:: false /* or never */
		fi
		/* and computes, or comes by a safe point */
	:: told[w] -> told[w] = false; settle() /* hd__attend */
		if
		:: !seated[w] -> atomic { runs[w] = false; queue[w]++ } goto own_stack /* BELOW_FLOOR */
		:: else
		fi
	fi;
	goto compute
}

/* A deadline that comes, or a plain thread that wakes. */
proctype wakes()
{
end_wakes:
	do
	:: atomic { waiting[0] > 0 -> waiting[0]--; queue[0]++ }
	:: atomic { waiting[1] > 0 -> waiting[1]--; queue[1]++ }
	:: atomic { waiting[2] > 0 -> waiting[2]--; queue[2]++ }
	od
}

#define SUSPECT(v) (blocked[v] && !away[v] && seated[v])
#define BACK(v) (away[v] && !blocked[v] && runs[v]) /* it may be seen to compute */
#define BEHIND(v) (away[v] && queue[v] > 0)

proctype watcher()
{
	byte v = NONE, x = NONE;
	bool back, many, has;

end_looks:
	do
	:: atomic { NEEDED && (SUSPECT(0) || SUSPECT(1) || SUSPECT(2)) ->
			if
			:: SUSPECT(0) -> v = 0 :: SUSPECT(1) -> v = 1 :: SUSPECT(2) -> v = 2
			fi
		}
		away[v] = true; /* mark_away: it may have come back by now */
		seats++;
#ifndef BREAK_AWAY_UNTOLD /* mark_away: no hd__raise */
		told[v] = true;
#endif
		v = NONE
	:: atomic { BACK(0) || BACK(1) || BACK(2) ->
			if
			:: BACK(0) -> v = 0 :: BACK(1) -> v = 1 :: BACK(2) -> v = 2
			fi
		}
		take_back(v);
		v = NONE
	:: atomic { NEEDED && seats > 0 && (resting[1] || resting[2]) -> seats-- } /* fill_seats: take_seat; one that has no spare to begin gives it back */
		atomic {
			if
			:: resting[1] -> x = 1
			:: resting[2] -> x = 2
			:: else -> x = NONE
			fi
		}
#ifdef BREAK_CLAIM_BY_LOOK /* begin_one: the bit is looked at, and then cleared */
		if
		:: x != NONE -> atomic { resting[x] = false; has = true }
		:: else -> has = false
		fi;
#else
		atomic {
			if
			:: x != NONE && resting[x] -> resting[x] = false; has = true /* hd__claim_resting */
			:: else -> has = false
			fi
		}
#endif
		if
		:: has ->
			atomic { if :: BEHIND(0) -> GIVE_AWAY(0, x) :: else fi } /* relieve, and the others */
#ifndef BREAK_CLAIMED_UNTOLD /* fill_seats: no hd__raise */
			told[x] = true
#endif
		:: else -> seats++
		fi;
		atomic { x = NONE; has = false }
	:: atomic { NEEDED && (BEHIND(0) || BEHIND(1) || BEHIND(2)) && (FREE(0) || FREE(1) || FREE(2)) ->
			if
			:: BEHIND(0) -> v = 0 :: BEHIND(1) -> v = 1 :: BEHIND(2) -> v = 2
			fi;
			SOME_WORKER(x);
			GIVE_AWAY(v, x); /* relieve */
			v = NONE; x = NONE
		}
	od
}

#define ACTIVE ((FREE(0) -> 1 : 0) + (FREE(1) -> 1 : 0) + (FREE(2) -> 1 : 0))
#define RUNS (runs[0] + runs[1] + runs[2])
#define BLOCKED (blocked[0] + blocked[1] + blocked[2])

/* When nothing moves any more. */
proctype quiet()
{
	timeout;
	d_step {
		assert(!READY);
		assert(alive == BLOCKED && RUNS == BLOCKED);
		assert(ACTIVE + seats == REGULAR);
		assert(seats >= 0);
		assert(BLOCKED > 0 || (seats == 0 && !away[0] && resting[1] && resting[2]))
	}
}

init
{
	atomic {
		queue[0] = PROCESSES;
		seated[0] = true;
		run worker(0); run worker(1); run worker(2); run watcher(); run wakes(); run quiet()
	}
}
