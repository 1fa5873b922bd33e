/* models/bias.pml - the lock of a lane, biased towards its worker, which enters with a store and a load; a visitor pays with a membarrier.
 *
 * Models:     sched/lane.h: hd__enter, hd__leave; sched/lane.c: drop_bias, hd__enter_by_lock, hd__rest, revoke, hd__visit.
 * Scenario:   one lane. Its worker enters and leaves a few times, and makes the lane biased whenever it likes. Two visitors visit, ask,
 *             and take the bias away at any moment: they do not wait for an answer.
 * Holds:      one thread at a time is inside. When nothing moves any more, the worker has done all it wanted, and the lock is free
 *             or kept by a worker that is not inside.
 *
 * The worker's stores of `held` go through a store buffer: others see them later, in order, at the latest at a membarrier or at the worker's
 * next locked operation. All other stores are seen at once: they stand beside locked operations. */

#ifndef ENTRIES
#define ENTRIES 3
#endif
#ifndef VISITS
#define VISITS 2
#endif

#define EMPTY 2 /* of the store buffer: nothing is on its way */

mtype = { NOT, BIASED, ASKED, REVOKING };

mtype bias = NOT;
bool lock;
byte held;	   /* as others see it */
byte buffer = EMPTY; /* the last store of held on its way to them */
bool buffer_zero;    /* and before that a 0 is */
bool own_held;	   /* as the worker sees it */

byte inside; /* for the checks alone */
byte done;

#define COME_IN atomic { inside++; assert(inside == 1) }
#define GO_OUT inside--

/* A store of held by the worker. The buffer has room for a leave and the enter after it; else the oldest is seen first. */
#define STORE_HELD(value)                                                \
	own_held = value;                                                \
	if                                                               \
	:: buffer == EMPTY -> buffer = value                             \
	:: buffer == 0 && value == 1 -> buffer_zero = true; buffer = 1   \
	:: else -> DRAIN; buffer = value                                 \
	fi
#define DRAIN if :: buffer != EMPTY -> held = buffer; buffer = EMPTY; buffer_zero = false :: else fi

/* The hardware: one store is seen. */
proctype memory()
{
end_quiet:
	do
	:: atomic { buffer_zero -> held = 0; buffer_zero = false }
	:: atomic { buffer != EMPTY && !buffer_zero -> held = buffer; buffer = EMPTY }
	od
}

/* drop_bias: by the worker, which is not inside. The compare-and-swap is a locked operation. */
inline drop_bias()
{
	atomic {
		DRAIN;
		if :: bias == ASKED -> bias = NOT; dropped = true :: else fi
	}
	if
	:: dropped -> dropped = false; lock = false
	:: else
	fi
}

proctype worker()
{
	byte n;
	bool dropped, resting;

	do
	:: n < ENTRIES && bias != NOT -> /* hd__rest */
		atomic {
			DRAIN;
			if :: bias == BIASED -> bias = NOT; resting = true :: else fi
		}
		if
		:: !resting -> /* hd__enter_by_lock */
			do
			:: bias == NOT -> break
			:: bias != NOT -> drop_bias()
			od;
			atomic { !lock -> lock = true; DRAIN }
		:: else
		fi;
		COME_IN; /* it writes w->lane.calm */
		GO_OUT;
		resting = false;
		lock = false
	:: n < ENTRIES -> /* hd__enter */
#ifdef BREAK_LOAD_FIRST /* hd__try_enter: bias loaded before held is stored */
		if
		:: bias != BIASED -> goto by_lock
		:: else
		fi;
		atomic { STORE_HELD(1) }
		goto entered;
#else
		atomic { STORE_HELD(1) }
		if
		:: bias == BIASED -> goto entered
		:: else
		fi;
		atomic { STORE_HELD(0) }
#endif
by_lock:	do /* hd__enter_by_lock */
		:: bias == NOT -> break
#ifdef BREAK_WAIT_FOR_VISITOR /* hd__enter_by_lock: waits for the visitor and never gives the lock back by itself */
		:: bias == NOT
#else
		:: bias != NOT -> drop_bias()
#endif
		od;
		atomic { !lock -> lock = true; DRAIN }
entered:	COME_IN;
		GO_OUT;
		n++;
		if /* hd__leave */
		:: own_held ->
			atomic { STORE_HELD(0) }
			if
			:: bias != BIASED -> drop_bias() /* hd__leave_slowly, if it is seen */
			:: true
			fi
		:: else ->
			if
			:: lock = false
			:: bias = BIASED /* and it keeps the lock */
			fi
		fi
	:: else -> break
	od;
	done++
}

proctype visitor()
{
	byte n;
	bool in, revoking;

	do
	:: n < VISITS ->
		if
		:: atomic { !lock -> lock = true } in = true
		:: atomic { bias == BIASED -> bias = ASKED }
		:: atomic { bias == ASKED -> bias = REVOKING; revoking = true }
		:: true /* gives up */
		fi;
		if
		:: revoking ->
			revoking = false;
#ifndef BREAK_NO_MEMBARRIER /* revoke: no membarrier */
			atomic { DRAIN }
#endif
			if
#ifdef BREAK_HELD_IGNORED /* revoke: held not looked at */
			:: bias = NOT; in = true
#else
			:: held == 0 -> bias = NOT; in = true
#endif
			:: bias = ASKED /* the worker was inside for long, or the barrier was refused: the worker must answer */
			fi
		:: else
		fi;
		if
		:: in -> COME_IN; GO_OUT; in = false; lock = false
		:: else
		fi;
		n++
	:: else -> break
	od;
	done++
}

proctype quiet()
{
	timeout;
	assert(done == 3 && inside == 0);
	assert(buffer == EMPTY && held == 0 && !own_held);
	assert(lock == (bias != NOT) && bias != REVOKING)
}

init
{
	atomic { run memory(); run worker(); run visitor(); run visitor(); run quiet() }
}
