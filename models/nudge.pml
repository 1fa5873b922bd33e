/* models/nudge.pml - requests: the control word, the nudge, moves and the end.
 *
 * Models:     change, change_word, nudge, apply_nudge, heed_and_obey, end_nudge (life/steer.c), hd__move_home (sched/lane.c), adopt
 *             (wait/wait.c), die, announce_end (life/end.c).
 * Scenario:   two workers and process P, at home on worker 0. P runs, waits, is granted by the other worker (which adopts it, or posts
 *             a wake), is ready, is taken by a thief, and ends. Two plain threads, and the
 *             process that runs on worker 1, each ask one thing of P. The watcher may apply the notes of either worker.
 * Holds:      a request is obeyed inside the lane of P's home, and P is there; what was asked and was not answered with -ESRCH was
 *             obeyed; the nudge is in one inbox at a time; no nudge is on its way when P dies.
 *
 * A statement, a d_step and an atomic block are one access each to what threads share. The lanes of both workers are locks. */

#define WORKERS 2
#define NONE WORKERS
#define PLAIN WORKERS

mtype = { RUNNING, READY, WAITING, CLAIMED, ENDED }

bool lane[WORKERS];
bool note[WORKERS];    /* the nudge is in this inbox */
bool wake[WORKERS];    /* P's wake is */

/* P's control word: one word, changed by compare-and-swap. */
bool nudged, moving, dead;
byte asked;	       /* what was asked: a bit for each asker */

byte home;
mtype state = READY;

/* For the check alone. */
byte obeyed;	 /* what the home has done */
byte answered;	 /* by 0: it will be obeyed */
byte moves = 2, turns = 2;

/* heed_and_obey by a thread inside the lane of `at`. */
inline heed_and_obey(at)
{
	do
	:: seen = asked; /* heed */
		atomic {
			assert(home == at && state != ENDED && !dead && nudged);
#ifdef BREAK_END_NUDGE_BLINDLY /* end_nudge: what was asked since is not looked at */
			nudged = false; obeyed = obeyed | seen; break
#else
			if
			:: asked == seen -> nudged = false; obeyed = obeyed | seen; break
			:: else
			fi
#endif
		}
	od;
	seen = 0
}

/* change, by a plain thread or by the runner of worker w, inside its lane. `what` is asked, a bit. */
inline change(what)
{
#ifdef BREAK_HOME_BEFORE_WORD /* nudge: home read before the control word is changed */
	to = home;
#endif
	atomic {
#ifdef BREAK_MOVING_IS_NOTHING /* change_word: HD__MOVING not waited for */
		true;
#else
		!moving;
#endif
		if
		:: dead
		:: !dead -> before = nudged; asked = asked | what; nudged = true; answered = answered | what; alive = true
		fi
	}
	if
	:: alive ->
#ifndef BREAK_HOME_BEFORE_WORD
		to = home;
#endif
		if
		:: to == w && !before -> heed_and_obey(w)
		:: to == w && before -> atomic { assert(home == w && !dead); obeyed = obeyed | what }
		:: to != w && !before -> atomic { assert(!note[to]); note[to] = true }
		:: to != w && before
		fi
	:: else
	fi;
	to = 0; before = false; alive = false
}

/* Inside the lane of `at`: apply_nudge, apply_wake. `visitor`: the watcher. */
inline apply_notes(at, visitor)
{
	atomic {
		if
		:: wake[at] -> wake[at] = false; assert(home == at && state == CLAIMED); state = READY
		:: else
		fi
	}
	if
	:: note[at] && !(visitor && state == RUNNING) ->
		note[at] = false;
		heed_and_obey(at)
	:: else
	fi
}

/* hd__move_home. */
inline move_home(at)
{
	atomic {
		if
#ifdef BREAK_MOVE_WHILE_NUDGED /* hd__move_home: HD__NUDGED not looked at */
		:: true -> moving = true; moved = true
#else
		:: nudged
		:: !nudged -> moving = true; moved = true
#endif
		fi
	}
	if
	:: moved -> home = at; moving = false
	:: else
	fi
}

#define P_RUNS_HERE (state == RUNNING && home == w)

proctype worker(byte w)
{
	byte seen, to;
	bool before, alive, moved, mine = true; /* mine: the runner of this worker, which is not P, has not asked yet */

end_rests:
	do
	:: atomic { !lane[w] && (note[w] || wake[w]) -> lane[w] = true }
		apply_notes(w, false);
		lane[w] = false
	/* P runs here, waits, */
	:: atomic { !lane[w] && state == READY && home == w && turns > 0 -> turns--; state = RUNNING }
	:: atomic { !lane[w] && P_RUNS_HERE -> state = WAITING }
	/* or ends: announce_end */
	:: atomic {
#ifdef BREAK_DIE_WHILE_NUDGED /* die: HD__NUDGED not looked at */
			!lane[w] && P_RUNS_HERE;
#else
			!lane[w] && P_RUNS_HERE && !nudged; /* if nudged, it takes in its news, and tries again */
#endif
			dead = true; state = ENDED;
			assert(!note[0] && !note[1])
		}
	/* another process runs here: it grants P's wait, */
	:: atomic { !lane[w] && state == WAITING -> lane[w] = true; state = CLAIMED }
		if
		:: home == w -> state = READY
		:: else -> move_home(w); /* adopt */
			if
			:: moved -> state = READY
			:: else -> atomic { to = home; wake[to] = true; to = 0 }
			fi;
			moved = false
		fi;
		lane[w] = false
	/* takes P out of the other lane, */
	:: atomic { !lane[w] && moves > 0 && state == READY && home != w && !lane[home] -> moves--; lane[w] = true; lane[1 - w] = true }
		move_home(w);
		moved = false;
		atomic { lane[1 - w] = false; lane[w] = false }
	/* or asks something of it */
	:: atomic { !lane[w] && mine && w == 1 && !P_RUNS_HERE -> mine = false; lane[w] = true }
		change(4);
		lane[w] = false
	od
}

proctype watcher()
{
	byte seen, at;

end_looks:
	do
	:: atomic {
			if
			:: note[0] && !lane[0] && !(state == RUNNING && home == 0) -> at = 0
			:: note[1] && !lane[1] && !(state == RUNNING && home == 1) -> at = 1
			fi;
			lane[at] = true
		}
		apply_notes(at, true);
		lane[at] = false
	od
}

proctype asker(byte what)
{
	byte w = PLAIN, seen, to;
	bool before, alive;

	change(what)
}

proctype quiet()
{
	timeout;
	assert(!nudged && !moving && !note[0] && !note[1] && !wake[0] && !wake[1]);
	assert((answered & ~obeyed) == 0);
	assert(state == ENDED || (state == READY && !turns))
}

init
{
	atomic { run worker(0); run worker(1); run watcher(); run asker(1); run asker(2); run quiet() }
}
