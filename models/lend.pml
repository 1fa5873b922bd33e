/* models/lend.pml - loans: callers that come and go, the boost of the process that will answer, its end, and the next process in its slot.
 *
 * Models:     hd__lend, hd__unlend, hd__lent, hd__loans_end (sync/lend.c), hd__find_boost (sync/inherit.c), hd__ask_reboost, heed_and_obey
 *             (life/steer.c), die (life/end.c), hd_reply's hd__boost_self (port/call.c).
 * Scenario:   process P and two callers, each of which lends P its level, and then another one; each call is answered by P, or ends otherwise,
 *             or never. P may end; then another process has its slot, with the next generation. The home of P is one thread.
 * Holds:      when the locks are free, the next process in the slot is lent nothing, and it has no boost; when nothing moves any more, a
 *             process has the boost that its callers lend it.
 *
 * A statement, a d_step and an atomic block are one access each to what threads share. */

#define CALLERS 2

/* The control word of the slot: one word, changed by compare-and-swap. */
byte generation;
bool dead, reboost, nudged;
byte boost;
byte own;	       /* its own priority: 0, or 3 for a while, above all that it is lent */

bool note;	       /* the nudge is in the inbox of P's home */
bool locked;	       /* the lock of the slot's loans */
byte rank[CALLERS];    /* 0: it is not among the lenders */
byte lent;	       /* p->lent */
bool open[CALLERS];    /* the call waits: the one that lowers this ends it */
byte level[CALLERS];
bool changed_own;      /* own has been changed since the home last heeded the word */
bool mortal;	       /* P may end; else nothing moves any more when its callers have done what they do */

#define HIGHEST (rank[0] > rank[1] -> rank[0] : rank[1])

inline lock() { atomic { !locked; locked = true } }
inline unlock() { locked = false }

/* Under the lock: `changed` is set if what P is lent has changed. */
inline count()
{
	changed = (lent != HIGHEST);
	lent = HIGHEST
}

#define ABOVE 3

/* hd__ask_reboost of the first process. */
inline ask()
{
	atomic {
		if
		:: dead || generation != 0 || reboost
		:: !dead && generation == 0 && !reboost ->
			reboost = true;
			if
			:: nudged
			:: !nudged -> nudged = true; assert(!note); note = true
			fi
		fi
	}
}

inline lend(i)
{
	lock();
#ifdef BREAK_ALIVE_FIRST /* hd__lend: looks whether P is alive before it is among the lenders */
	alive = !dead && generation == 0;
#endif
	rank[i] = level[i];
	count();
#ifndef BREAK_ALIVE_FIRST
	d_step { alive = !dead && generation == 0; changed = changed && own == 0 };
#endif
	if
	:: !alive -> rank[i] = 0; count(); changed = false
	:: alive
	fi;
	unlock();
	if
	:: changed -> ask()
	:: !changed
	fi
}

inline unlend(i)
{
	lock();
	rank[i] = 0; /* or hd__loans_end has done it */
	count();
	changed = changed && own == 0;
	unlock()
}

proctype caller(byte i)
{
	bool changed, alive;

	lend(i);
	if
	:: alive -> /* hd__lend_anew: it has another level now; under the lock of its queue, in which it waits still */
		atomic { open[i] = true; level[i] = 3 - level[i] };
		if
		:: atomic { open[i] -> open[i] = false }
			unlend(i);
			if
			:: changed -> ask()
			:: !changed
			fi;
			lend(i);
			if
			:: alive -> open[i] = true
			:: !alive
			fi
		:: true
		fi;
		if
		:: atomic { open[i] -> open[i] = false } /* its time is up */
			unlend(i);
			if
			:: changed -> ask()
			:: !changed
			fi
		:: true /* it waits for ever, or is answered */
		fi
	:: !alive
	fi
}

/* hd__find_boost. */
inline find_boost()
{
#ifdef BREAK_LOOK_FIRST /* looks before it clears HD__REBOOST */
	lock(); found = lent; unlock();
	reboost = false;
#else
	reboost = false;
	lock(); found = lent; unlock();
#endif
	boost = found
}

/* hd_set_priority: P's own is above all, and 0 again. */
proctype setter()
{
	atomic {
		if
		:: !dead && generation == 0 -> own = ABOVE
		:: else
		fi
	}
	atomic {
		if
		:: !dead && generation == 0 ->
			own = 0;
			changed_own = true;
			if
			:: nudged
			:: !nudged -> nudged = true; assert(!note); note = true
			fi
		:: else
		fi
	}
}

/* P, whose call it was, answers: it asks nothing of itself, but looks. */
inline reply(i)
{
	unlend(i);
#ifndef BREAK_REPLY_DOES_NOT_LOOK
	if
	:: boost != 0 -> find_boost()
	:: boost == 0
	fi
#endif
}

proctype home()
{
	bool changed;
	byte found;

	do
	:: note -> /* heed_and_obey */
		note = false;
		do
		:: if
			:: reboost -> find_boost()
			:: else /* heed: another priority of its own */
#ifndef BREAK_OWN_ALONE /* and no look at what it is lent */
				-> find_boost()
#endif
			fi;
			atomic {
				if
				:: !reboost && !changed_own -> nudged = false; break
				:: else -> changed_own = false
				fi
			}
		od
	:: atomic { generation == 0 && open[0] -> open[0] = false }
		reply(0)
	:: atomic { generation == 0 && open[1] -> open[1] = false }
		reply(1)
	:: atomic { mortal && generation == 0 && !nudged && !dead -> dead = true } /* P ends */
#ifndef BREAK_NO_LOANS_END /* announce_end: the loans stay */
		if
		:: lent != 0 -> lock(); d_step { rank[0] = 0; rank[1] = 0 }; count(); unlock()
		:: lent == 0
		fi;
#endif
		d_step { generation = 1; dead = false; boost = 0; reboost = false }
		/* a new process, with its own home; here none asks anything of it */
	:: timeout -> break
	od;
	assert(generation == 1 || boost == HIGHEST);
	assert(lent == HIGHEST)
}

proctype monitor()
{
	do
	:: atomic { generation == 1 && !locked -> assert(lent == 0 && HIGHEST == 0 && boost == 0); break }
	:: timeout -> break
	od
}

init {
	atomic {
		level[0] = 2;
		level[1] = 1;
		if
		:: mortal = true
		:: mortal = false
		fi;
		run caller(0);
		run caller(1);
		run home();
		run setter();
		run monitor()
	}
}
