/* models/idle.pml - shares, stealing, the board, the idle set and the watcher.
 *
 * Models:     sched/share.c, the choice in sched/sched.c, `idle` in sched/worker.c, look_at_shares in sched/watcher.c.
 * Scenario:   each worker begins with nobody or with a process of level 1 or 2. Whoever runs makes others, a few in all, ends, or
 *             computes on for ever, coming by safe points. A process that never ran may run
 *             anywhere; one that was preempted is pinned, or movable, as it likes.
 * Holds:      when nothing moves any more, nobody is lost or there twice, no worker is idle while a process waits in a share,
 *             and none runs a process while a better one waits in a share, or pinned there.
 *
 * What a lock guards is one step; so is one access to the board. A level in a share is taken to be ripe or not as it likes. */

#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef MAKES
#define MAKES 2 /* how many processes are made */
#endif
#ifndef ENDS
#define ENDS 1 /* how many may end */
#endif

#define NOBODY 0
#define NONE WORKERS
#define BIT(n) (1 << (n))

/* A queue is a number: 1 for each process of level 1 that is in it, 16 for each of level 2. */
#define ONE(level) ((level) == 2 -> 16 : (level))
#define LEVEL(queue) ((queue) >= 16 -> 2 : ((queue) > 0 -> 1 : 0)) /* of its best */

byte share[WORKERS];   /* what waits and may run anywhere; under its lock */
byte pinned[WORKERS];  /* what waits and may run here only; the worker's own */
byte current[WORKERS]; /* the level of who runs, or 0; the worker's own */

/* The board. */
byte shared[WORKERS];	 /* the level of the best in the share, or 0; stored under its lock */
byte running[WORKERS];	 /* the level of who runs or is about to, or NOBODY */
byte idle;		 /* the workers that can be claimed, a set */

bool attention[WORKERS]; /* the bit HD__STEAL; that a raise wakes a sleeper is attention.pml's */
bool eager = true;	 /* the watcher will look again by itself */
bool kicked;

byte makes = MAKES, ends = ENDS;
byte alive; /* for the check: all that there are, as a queue */

#define PUSH(v, queue) share[v] = share[v] + (queue); shared[v] = LEVEL(share[v])
#define TAKE(v, queue) share[v] = share[v] - (queue); shared[v] = LEVEL(share[v])

#define OTHER(n) ((w + n) % WORKERS)

/* One load: whether the best that v shares is better than what was seen so far. */
#define LOOK(v) if :: shared[v] > best -> best = shared[v]; from = v :: else fi
#if WORKERS == 2
#define LOOK_AT_OTHERS(above) atomic { best = above; LOOK(OTHER(1)) }
#else
#define LOOK_AT_OTHERS(above) atomic { best = above; LOOK(OTHER(1)) }; atomic { LOOK(OTHER(2)) }
#endif

/* tell_those_below, for one of them. */
#define TELL(v, than) atomic { if :: running[v] != NOBODY && running[v] < (than) -> attention[v] = true :: else fi }
#if WORKERS == 2
#define TELL_OTHERS(than) TELL(OTHER(1), than)
#else
#define TELL_OTHERS(than) TELL(OTHER(1), than); TELL(OTHER(2), than)
#endif

/* claim_idle: takes one out of the idle set, if there is one. */
#define CLAIM                                  \
	if                                     \
	:: idle & 1 -> whom = 0                \
	:: !(idle & 1) && idle & 2 -> whom = 1 \
	:: !(idle & 3) && idle & 4 -> whom = 2 \
	:: else                                \
	fi;                                    \
	idle = idle & ~BIT(whom)

inline wake_one()
{
	atomic { CLAIM }
	atomic { if :: whom != NONE -> attention[whom] = true; whom = NONE :: else fi }
}

/* hd__watcher_notice */
inline notice()
{
	if
	:: !eager -> kicked = true
	:: else
	fi
}

/* announce: `than` waits in a share, and its worker does not run it at once. */
inline announce(than)
{
	TELL_OTHERS(than);
	if
	:: idle -> notice()
	:: else
	fi
}

proctype worker(byte w)
{
	byte level, best, from, displaced, loot, whom = NONE;
	bool unannounced, less;

	if
	:: current[w] -> goto compute
	:: else -> goto be_idle
	fi;

choose:
	atomic {
		level = LEVEL(share[w] + pinned[w]);
		if
		:: level <= displaced && displaced -> goto go_on
		:: level == 0 && !displaced -> goto be_idle
		:: level > displaced && level != running[w] -> less = (running[w] == NOBODY || level < running[w]); goto publish
		:: level > displaced && level == running[w] && LEVEL(pinned[w]) == level -> pinned[w] = pinned[w] - ONE(level)
		:: level > displaced && level == running[w] && LEVEL(share[w]) == level -> TAKE(w, ONE(level))
		fi;
		current[w] = level;
		goto dispatched
	}

publish: /* hd__set_level: first others know, then it looks; whoever pushes does so before it looks who runs what */
#ifdef BREAK_LOOK_BEFORE_PUBLISH /* hd__set_level: board.running stored after the look at board.shared */
	LOOK_AT_OTHERS(level);
	running[w] = level;
#else
	running[w] = level;
	if
	:: less -> LOOK_AT_OTHERS(level)
	:: else -> goto choose
	fi;
#endif
	atomic {
		if
		:: less && best > level && LEVEL(share[from]) > level -> /* hd__share_steal */
			level = LEVEL(share[from]); TAKE(from, ONE(level)); current[w] = level; best = 0; from = 0
		:: else -> best = 0; from = 0; goto choose
		fi
	}
	running[w] = level; /* hd__give */
	goto dispatched;

go_on: /* who was to give way and roams: somebody else has taken what it was for */
	atomic { level = displaced; current[w] = displaced; displaced = 0; less = level < running[w] }
	running[w] = level;
	if
	:: less -> LOOK_AT_OTHERS(level); /* HD__STEAL_DUE */
		atomic { if :: best > level -> attention[w] = true :: else fi; best = 0; from = 0 }
	:: else
	fi;

dispatched:
	atomic {
		less = false;
		if
		:: displaced -> PUSH(w, ONE(displaced)) /* hd__share_put_leaving */
		:: else
		fi
	}
#ifndef BREAK_DISPLACED_IS_NOT_ANNOUNCED /* hd__share_put_leaving: no announce */
	if
	:: displaced -> announce(displaced)
	:: else
	fi;
#endif
	atomic { displaced = 0 }
#ifndef BREAK_UNANNOUNCED_IS_FORGOTTEN /* hd__choose_slowly: w->unannounced not looked at */
	if
	:: unannounced -> best = shared[w]; if :: best -> announce(best) :: else fi; best = 0
	:: else
	fi;
#endif
	unannounced = false;

compute:
end_computes:
	if
	/* makes one that may run anywhere: hd__share_put */
	:: atomic { makes > 0 -> makes--;
			if
			:: loot = 1
			:: loot = 2
			fi;
			alive = alive + ONE(loot);
#ifndef BREAK_TELL_BEFORE_PUSH
			PUSH(w, ONE(loot));
			if
			:: loot > current[w] -> unannounced = true; loot = 0; goto compute
			:: else
			fi
#endif
		}
		announce(loot);
#ifdef BREAK_TELL_BEFORE_PUSH /* hd__share_put: board.running and board.idle looked at before board.shared is stored */
		atomic { PUSH(w, ONE(loot)) }
#endif
		loot = 0;
		goto compute
#if WORKERS == 2
	/* wakes one that is pinned here */
	:: atomic { makes > 0 -> makes--; pinned[w] = pinned[w] + 16; alive = alive + 16; goto compute }
#endif
	/* ends */
	:: atomic { ends > 0 -> ends--; alive = alive - ONE(current[w]); current[w] = 0; goto choose }
	/* comes by a safe point: hd__attend */
	:: LEVEL(share[w] + pinned[w]) > current[w] -> goto give_way
	:: atomic { attention[w] -> attention[w] = false;
			level = (LEVEL(share[w] + pinned[w]) > current[w] -> LEVEL(share[w] + pinned[w]) : current[w])
		}
		LOOK_AT_OTHERS(level);
		atomic {
			if
			:: best > level && LEVEL(share[from]) > level -> /* hd__share_steal: it runs at once */
				level = LEVEL(share[from]); TAKE(from, ONE(level)); best = 0; from = 0;
				if
				:: pinned[w] = pinned[w] + ONE(current[w])
#if WORKERS == 2
				:: displaced = current[w]
#endif
				fi;
				current[w] = level
			:: else -> best = 0; from = 0; goto compute
			fi
		}
		running[w] = level;
		goto dispatched
	fi;

give_way:
	atomic {
		if
		:: pinned[w] = pinned[w] + ONE(current[w])
#if WORKERS == 2
		:: displaced = current[w]
#endif
		fi;
		current[w] = 0;
		goto choose
	}

be_idle:
	running[w] = NOBODY;
	idle = idle | BIT(w);
#ifndef BREAK_NO_RECHECK /* idle: no look at the shares after the bit is up */
	if
	:: shared[w] -> idle = idle & ~BIT(w); goto choose
	:: else
	fi;
	LOOK_AT_OTHERS(0);
	atomic {
		if
		:: best -> best = 0; from = 0
		:: else -> goto asleep
		fi
	}
	if
	:: idle = idle & ~BIT(w); goto steal /* ripe */
	:: notice()			     /* not yet */
	fi;
#endif
asleep:
end_asleep:
	attention[w];
	idle = idle & ~BIT(w);
	attention[w] = false;
	if
	:: share[w] + pinned[w] -> goto choose
	:: else
	fi;

steal: /* hd__share_steal_ripe: one or two */
	LOOK_AT_OTHERS(0);
	atomic {
		if
		:: best && share[from] ->
			loot = ONE(LEVEL(share[from])); TAKE(from, loot);
			if
			:: share[from] -> best = ONE(LEVEL(share[from])); TAKE(from, best); loot = loot + best
			:: true
			fi;
			best = 0
		:: else -> best = 0; from = 0; goto be_idle
		fi
	}
	/* What is in its hands is in no queue: others may look, find nothing and go to sleep. */
	atomic {
		PUSH(w, loot);
#ifndef BREAK_STOLEN_IS_NOT_ANNOUNCED /* steal_ripe_from: w->unannounced not set */
		unannounced = true
#endif
	}
	if
	:: (loot != 1 && loot != 16) || shared[from] -> wake_one()
	:: else
	fi;
	atomic { loot = 0; from = 0; goto choose }
}

active proctype watcher()
{
	byte best, from, whom = NONE;

	do
	:: kicked = false;
#ifndef BREAK_WATCHER_LOOKS_FIRST
		eager = false;
#endif
		atomic { LOOK(0) }
		atomic { LOOK(1) }
#if WORKERS == 3
		atomic { LOOK(2) }
#endif
		atomic {
			from = 0;
			if
			:: best -> best = 0; CLAIM
			:: else
			fi
		}
		if
		:: whom != NONE ->
			eager = true;
#ifdef BREAK_CLAIM_WITHOUT_RAISE /* hd__wake_one: the worker that was claimed is left asleep if there is nothing for it any more */
			if
			:: shared[0] + shared[1] -> attention[whom] = true
			:: else
			fi;
			whom = NONE
#else
			atomic { attention[whom] = true; whom = NONE }
#endif
		:: whom == NONE ->
#ifdef BREAK_WATCHER_LOOKS_FIRST /* watch: no second look between the stores to `eager` and `until` and the sleep */
			eager = false;
#endif
end_asleep:		kicked;
			eager = true
		fi
	od
}

/* When nothing moves any more. */
active proctype quiet()
{
	byte v, w, all;

	atomic { makes = 0; ends = 0 } /* at any time: whoever runs now computes on for ever */
	timeout;
	d_step {
		for (w : 0 .. WORKERS - 1) {
			for (v : 0 .. WORKERS - 1) {
				assert(LEVEL(share[v]) <= current[w])
			}
			assert(LEVEL(pinned[w]) <= current[w]);
			assert(shared[w] == LEVEL(share[w]));
			all = all + share[w] + pinned[w] + ONE(current[w])
		}
		assert(all == alive)
	}
}

init
{
	byte w, most = 2;

	atomic {
		for (w : 0 .. WORKERS - 1) { /* none has more than the one before: they are all alike */
			if
			:: current[w] = 0
			:: most >= 1 -> current[w] = 1
			:: most == 2 -> current[w] = 2
			fi;
			most = current[w];
			running[w] = most;
			alive = alive + ONE(current[w])
		}
		run worker(0);
		run worker(1);
#if WORKERS == 3
		run worker(2)
#endif
	}
}
