/* models/guest.pml - a guest that dies without the lock of its news, and is born again in the same block.
 *
 * Models:     hd__guest_dies, hd__guest_reborn (life/guest.h), die, announce_end (life/end.c); hd__news_lock, as hd_watch (port/tie.c) and hd__doom
 *             (life/terminate.c) use it; hd__ask (life/steer.c).
 * Scenario:   a guest lives twice in one block. Meanwhile, at any time, a thread watches the first of the two, another one dooms it.
 * Holds:      the watch is told once, that the first has ended; nothing that was meant for the first is found in the second.
 *
 * A statement, a d_step and an atomic block are one access each to what threads share. */

#define LIVES 2

/* The control word: one word, changed by compare-and-swap. */
byte generation;
bool dead = true, doomed;

bool news;	  /* the lock */
bool mourner;	  /* under the lock; or by the guest while no other thread can find it alive */
bool reason;	  /* end_err: likewise */
byte told;	  /* how often the watch was */

inline lock() { atomic { !news -> news = true } }
inline unlock() { news = false }

proctype guest()
{
	byte life = 0;
	bool quick;

	do
	:: life == LIVES -> break
	:: life < LIVES ->
		/* hd__guest_reborn */
		assert(!mourner);
		reason = false;
		d_step { assert(dead && generation == life); dead = false; doomed = false };
		/* its turn */
		quick = !mourner;
#ifdef BREAK_LOOK_BEFORE_DEATH /* hd__guest_dies: looks whether the lock is free before it is dead */
		quick = quick && !news;
#endif
		if
		:: quick ->
			d_step { if :: !doomed -> dead = true :: else -> quick = false fi };
#ifndef BREAK_LOOK_BEFORE_DEATH
			if
			:: quick -> quick = !news
			:: !quick
			fi;
			if
			:: quick -> quick = !mourner
			:: !quick
			fi
#endif
		:: !quick
		fi;
		if
		:: !quick -> /* announce_end */
			lock();
			dead = true;
			if
			:: mourner -> mourner = false; told++
			:: !mourner
			fi;
			assert(life == 0 || !reason);
			unlock()
		:: quick -> assert(life == 0 || !reason)
		fi;
		d_step { generation++; dead = true }; /* free, and the next one's */
		life++
	od
}

#define ALIVE (generation == 0 && !dead)

proctype watch()
{
	bool alive;

	generation > 0 || !dead; /* it has the id of the first */
#ifdef BREAK_ALIVE_BEFORE_LOCK /* hd__news_lock: looks whether it is alive before it has the lock */
	alive = ALIVE;
	lock();
#else
	lock();
	alive = ALIVE;
#endif
	if
	:: alive -> mourner = true
	:: !alive -> told++
	fi;
	unlock()
}

proctype doom()
{
	bool alive;

	generation > 0 || !dead;
	lock();
	alive = ALIVE;
	if
	:: alive -> reason = true
	:: !alive
	fi;
	unlock();
	d_step {
		if
		:: ALIVE -> doomed = true
		:: else
		fi
	}
}

init
{
	atomic { run guest(); run watch(); run doom() };
	_nr_pr == 1;
	assert(told == 1 && !mourner)
}
