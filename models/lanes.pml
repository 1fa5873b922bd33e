/* models/lanes.pml - rule 1 among busy workers: lanes, adverts, levels that run, lookers.
 *
 * Models:     hd__enter, hd__leave, hd__visit, hd__unvisit, hd__take_better (sched/lane.[ch]), hd__set_level, hd__set_advert,
 *             hd__tell_those_below, hd__next_advert (sched/board.c), hd__attend, hd__choose_slowly, hd__run_next (sched/sched.c).
 * Scenario:   three workers: 0 and 2 run a process of level 2, worker 1 runs one of level 1, and a pinned one of level 1 is ready with
 *             worker 0. Runners make processes ready, of level 2 or 3, pinned or not, a few in all; runners wait, a few times in
 *             all. A plain thread visits a lane and puts a process in, or sends a request to a process that is ready.
 * Holds:      when nothing moves any more, no worker runs a process of a lower level than one that is ready and may run there, and no
 *             worker is idle while something is ready in its own lane. Every process is in one place.
 *
 * With two workers little of this can go wrong: it takes one that tells, one that is told, and one that takes what was there. Workers
 * that idle are idle.pml's. A statement, a d_step and an atomic block are one access each to what threads share; what a lane holds is
 * touched by the thread that is inside alone, so it needs no steps of its own. */

#ifndef MAKES
#define MAKES 1 /* how many processes the runners make ready */
#endif
#ifndef WAITS
#define WAITS 1 /* how often a runner waits, for ever */
#endif

#define WORKERS 3
#define NOBODY 0 /* running: the worker is idle. In the code it is above every level; here it is left out by name */

/* A queue is a number: 1 for each process of level 1 that is in it, 8 for each of level 2, 64 for each of level 3. */
#define ONE(level) ((level) == 3 -> 64 : ((level) == 2 -> 8 : (level)))
#define LEVEL(queue) ((queue) >= 64 -> 3 : ((queue) >= 8 -> 2 : ((queue) > 0 -> 1 : 0))) /* of its best */
#define MAX(a, b) ((a) > (b) -> (a) : (b))

/* The lanes: for the thread that is inside. */
bool lane[WORKERS];	/* the lock */
byte movable[WORKERS];	/* a queue: what is ready and may move */
byte pinned[WORKERS];	/* a queue: what is ready and must stay */
byte nudged[WORKERS];	/* the level of a ready process to which a request is on its way; 0: there is none */
byte current[WORKERS];	/* the level of the runner; 0: none */

/* The board. */
byte running[WORKERS]; /* board.running */
byte advert[WORKERS];  /* board.adverts and w->lane.advert */

bool better[WORKERS];	 /* the bit HD__BETTER of the attention word; that a raise wakes a sleeper is attention.pml's */
bool inbox[WORKERS];	 /* HD__INBOX: the request is in the inbox */

byte makes = MAKES, waits = WAITS;
byte alive = 2 * 8 + 2 * 1; /* for the check alone, a queue: all that there are */

#define HIGHEST(v) MAX(LEVEL(movable[v] + pinned[v]), nudged[v]) /* runq.highest */
#define HIGHEST_MOVABLE(v) MAX(LEVEL(movable[v]), nudged[v])	    /* highest_movable */

#define OTHER(w, k) (((w) + (k)) % WORKERS)

/* hd__tell_those_below: one load shows all levels. That a worker is not told twice makes no difference. */
#define TELL(x, than) if :: running[x] != NOBODY && running[x] < than -> better[x] = true :: else fi
#define TELL_OTHERS(w, than) TELL(OTHER(w, 1), than); TELL(OTHER(w, 2), than)

/* advertise, inside the lane of v, where `told` is the highest level at which a process may move; and then the lane is left. */
inline advertise_and_leave(v)
{
#ifdef BREAK_TELL_BEFORE_ADVERT /* advertise: hd__tell_those_below called before hd__set_advert */
	atomic { TELL_OTHERS(v, told) }
	atomic { advert[v] = told; told = 0; lane[v] = false }
#else
	advert[v] = told; /* hd__set_advert */
	atomic {
#ifndef BREAK_TELL_NOBODY /* advertise: no hd__tell_those_below */
		TELL_OTHERS(v, told);
#endif
		told = 0; lane[v] = false
	}
#endif
}

/* hd__runq_take: the first of the highest level. Which one of equals came first is not known here. */
#define RUNQ_TAKE                                                                               \
	if                                                                                      \
	:: LEVEL(movable[w]) == level -> movable[w] = movable[w] - ONE(level)                   \
	:: LEVEL(pinned[w]) == level -> pinned[w] = pinned[w] - ONE(level)                      \
	:: nudged[w] == level -> nudged[w] = 0 /* the request finds it running, or later, here */ \
	fi;                                                                                     \
	current[w] = level

/* The runner, which is to give way, goes back to the queue. */
#define PUSH_RUNNER movable[w] = movable[w] + ONE(current[w]); current[w] = 0

/* hd__take_news: the request is obeyed, and its process may move again. */
#define TAKE_NEWS                                                                       \
	look = look || better[w];                                                       \
	better[w] = false;                                                              \
	if                                                                              \
	:: inbox[w] -> inbox[w] = false;                                                \
		if                                                                      \
		:: nudged[w] -> movable[w] = movable[w] + ONE(nudged[w]); nudged[w] = 0 \
		:: else                                                                 \
		fi                                                                      \
	:: else                                                                         \
	fi

proctype worker(byte w)
{
	byte level, took, told, v, k = 1;
	bool look /* HD__LOOK_ELSEWHERE in w->resched */, again, stays, less;

compute:
end_computes:
	if
	/* makes one ready; the safe point at the end of the call is one of those below */
	:: atomic { makes > 0 && !lane[w] -> makes--; lane[w] = true;
			if
			:: movable[w] = movable[w] + 8; alive = alive + 8
			:: movable[w] = movable[w] + 64; alive = alive + 64
			:: pinned[w] = pinned[w] + 64; alive = alive + 64
			fi;
			goto leave
		}
	/* waits, for ever: hd__choose, in the same call */
	:: atomic { waits > 0 && !lane[w] -> waits--; lane[w] = true; alive = alive - ONE(current[w]); current[w] = 0; goto choose }
	/* comes by a safe point: hd__attend */
	:: atomic { (better[w] || inbox[w] || look || HIGHEST(w) > current[w]) && !lane[w] -> lane[w] = true;
			TAKE_NEWS;
			if
			:: look -> look = false; level = MAX(HIGHEST(w), current[w]); goto look_elsewhere
			:: else -> goto looked
			fi
		}
	fi;

look_elsewhere: /* hd__take_better, for something above `level` */
	atomic {
		do
		:: k < WORKERS && advert[OTHER(w, k)] <= level -> k++ /* hd__next_advert: one load of all adverts */
		:: k < WORKERS && advert[OTHER(w, k)] > level && lane[OTHER(w, k)] -> /* hd__visit fails */
#ifndef BREAK_BUSY_IS_ENOUGH /* hd__take_better: hd__visit fails, and `again` is not set */
			again = true;
#endif
			k++
		:: else -> break
		od;
		if
		:: k == WORKERS -> goto looked
		:: k < WORKERS -> v = OTHER(w, k); k++ /* hd__visit: inside v's lane until the end of this step; take_first_above */
		fi;
		stays = nudged[v] > level && nudged[v] > LEVEL(movable[v]);
		if
		:: nudged[v] > level && nudged[v] == LEVEL(movable[v]) -> stays = true /* it is ahead of the other */
		:: true
		fi;
		if
		:: LEVEL(movable[v]) > level ->
			movable[w] = movable[w] + ONE(took); /* what was taken from another lane before */
			took = LEVEL(movable[v]);
			movable[v] = movable[v] - ONE(took);
			level = took
		:: else
		fi;
#ifndef BREAK_NUDGED_IS_FORGOTTEN /* hd__take_better: `again` not set for what stays */
		again = again || stays;
#endif
		if
#ifdef BREAK_LOWER_TO_NOTHING /* hd__take_better: the advert becomes 0 and not `left`, although less may be ready there */
		:: level < advert[v] && !stays -> advert[v] = 0
#else
#ifdef BREAK_LOWER_OUTSIDE /* hd__take_better: hd__set_advert called after the lane was left */
		:: level < advert[v] && !stays -> goto lower_outside
#else
		:: level < advert[v] && !stays -> advert[v] = level
#endif
#endif
		:: else
		fi;
		stays = false; v = 0;
		goto look_elsewhere
	}
#ifdef BREAK_LOWER_OUTSIDE
lower_outside:
	atomic { advert[v] = level; stays = false; v = 0; goto look_elsewhere }
#endif

looked:
	atomic {
		k = 1; look = look || again; again = false;
		if
		:: took -> /* it runs next */
			if :: current[w] -> PUSH_RUNNER :: else fi;
			current[w] = took; level = took; took = 0; less = false; goto give
		:: !took && !current[w] -> RUNQ_TAKE; less = false; goto give
		:: !took && current[w] && HIGHEST(w) > current[w] -> PUSH_RUNNER; goto choose
		:: !took && current[w] && HIGHEST(w) <= current[w] -> goto leave
		fi
	}

choose: /* hd__choose; running[w] is w->running_priority */
	atomic {
		level = HIGHEST(w);
		if
		:: level == 0 -> goto idle
		:: level && level == running[w] -> RUNQ_TAKE; goto leave
		:: level && level != running[w] ->
			less = level < running[w] || running[w] == NOBODY
		fi;
#ifdef BREAK_LOOK_BEFORE_PUBLISH /* hd__set_level: board.running stored after the look at the adverts */
		if :: less -> goto look_elsewhere :: else -> goto looked fi
#endif
	}
	atomic { /* hd__set_level: other workers know first, then it looks */
		running[w] = level;
		if :: less -> less = false :: else -> goto looked fi
	}
	goto look_elsewhere;

give: /* hd__give, hd__set_level */
#ifdef BREAK_LOOK_BEFORE_PUBLISH
	running[w] = level;
#else
	atomic {
		if
		:: level != running[w] -> less = level < running[w]; running[w] = level
		:: else
		fi;
		if :: less -> less = false :: else -> goto leave fi
	}
	atomic {
		if
		:: advert[OTHER(w, 1)] > level || advert[OTHER(w, 2)] > level -> look = true
		:: else
		fi
	}
#endif

leave: /* hd__leave */
	atomic {
		level = 0;
		assert(current[w] == running[w]);
		told = HIGHEST_MOVABLE(w);
		if
		:: told <= advert[w] -> told = 0; lane[w] = false; goto compute
		:: told > advert[w]
		fi
	}
	advertise_and_leave(w);
	goto compute;

idle: /* give_to_nobody, hd__worker_run: the worker's own stack, and nothing is ready here */
	running[w] = NOBODY;
	lane[w] = false;
end_idle:
	atomic { (better[w] || inbox[w]) && !lane[w] -> lane[w] = true; TAKE_NEWS; look = false; goto choose }
}

/* A plain thread: spawns a process into some lane, or asks something of a process that is ready. */
proctype thread()
{
	byte at, told;

end_never:
	if
	:: atomic { /* send in life/spawn.c: hd__visit_surely */
			if
			:: !lane[0] -> at = 0
			:: !lane[1] -> at = 1
			:: !lane[2] -> at = 2
			fi;
			lane[at] = true;
			if
			:: movable[at] = movable[at] + 64; alive = alive + 64
			:: movable[at] = movable[at] + 1; alive++
			fi;
			told = HIGHEST_MOVABLE(at);
			if
			:: told > advert[at]
			:: else -> lane[at] = false; goto is_put
			fi
		}
		advertise_and_leave(at);
is_put:
#ifndef BREAK_SLEEPER_IS_NOT_TOLD /* hd__unvisit: no raise */
		atomic { if :: running[at] == NOBODY -> better[at] = true :: else fi }
#endif
	:: atomic { /* change_word: HD__NUDGED */
			if
			:: movable[0] -> at = 0
			:: movable[1] -> at = 1
			:: movable[2] -> at = 2
			fi;
			nudged[at] = LEVEL(movable[at]);
			movable[at] = movable[at] - ONE(nudged[at])
		}
		inbox[at] = true /* hd__post */
	fi
}

#define EVERYTHING(v) (movable[v] + pinned[v] + ONE(nudged[v]) + ONE(current[v]))

/* When nothing moves any more. */
active proctype quiet()
{
	byte v, w;

	timeout;
	d_step {
		for (w : 0 .. WORKERS - 1) {
			assert(!lane[w] && !nudged[w]);
			assert(HIGHEST(w) <= current[w]);
			for (v : 0 .. WORKERS - 1) {
				assert(running[w] == NOBODY || LEVEL(movable[v]) <= current[w])
			}
		}
		assert(EVERYTHING(0) + EVERYTHING(1) + EVERYTHING(2) == alive)
	}
}

init
{
	atomic {
		current[0] = 2; current[1] = 1; current[2] = 2;
		running[0] = 2; running[1] = 1; running[2] = 2;
		pinned[0] = 1;
		run worker(0); run worker(1); run worker(2); run thread()
	}
}
