/* models/seat.pml - an asymmetric lock for a lane: its owner enters with a store and a load, a visitor pays with a membarrier.
 *
 * Models:     nothing yet. The code locks a lane with a compare-and-swap (sched/lane.h); this decides whether it may do otherwise.
 *             enter, leave, visit, unvisit, evict, step_back of a seat {held, wanted, by_gate, w} and a lane {gate, owner}.
 * Scenario:   one lane. The thread of seat 0 owns it, enters and leaves a few times, and may be held up anywhere. A visitor visits.
 *             An evictor gives the lane to the thread of seat 1, which then enters it too. A thread that finds itself evicted
 *             becomes a spare; that it asks for the lane back is left out.
 * Holds:      one thread at a time is inside. When nothing moves any more, the gate is free and all can see that no seat is held.
 *
 * The owner's stores of `held` go through a store buffer: others see them later, in order, at the latest at a membarrier or when the
 * owner takes or releases the gate (a locked operation). All other stores are seen at once: they stand beside locked operations. */

#ifndef ENTRIES
#define ENTRIES 2 /* how often each owner enters */
#endif
#ifndef VISITS
#define VISITS 2
#endif

#define SEATS 2
#define EMPTY 2 /* of a store buffer: nothing is on its way */

/* A seat. */
byte held[SEATS];   /* as others see it */
byte buffer[SEATS]; /* the last store of held on its way to them */
bool buffer_zero[SEATS]; /* and before that a 0 is */
bool wanted[SEATS];
bool has[SEATS];	/* seat.w: not NULL */

/* The lane. */
bool gate;
byte owner;

byte inside; /* for the check alone */

#define COME_IN atomic { inside++; assert(inside == 1) }
#define GO_OUT inside--

/* A store of held by its owner. The buffer has room for a leave and the enter after it; else the oldest is seen first. */
#define STORE_HELD(value)                                                      \
	if                                                                     \
	:: buffer[s] == EMPTY -> buffer[s] = value                             \
	:: buffer[s] == 0 && value == 1 -> buffer_zero[s] = true; buffer[s] = 1 \
	:: else -> DRAIN(s); buffer[s] = value                                 \
	fi
#define DRAIN(s)                                                                         \
	if :: buffer[s] != EMPTY -> held[s] = buffer[s]; buffer[s] = EMPTY; buffer_zero[s] = false :: else fi

/* The hardware: one store is seen. */
proctype memory()
{
end_quiet:
	do
	:: atomic { buffer_zero[0] -> held[0] = 0; buffer_zero[0] = false }
	:: atomic { buffer[0] != EMPTY && !buffer_zero[0] -> held[0] = buffer[0]; buffer[0] = EMPTY }
	:: atomic { buffer_zero[1] -> held[1] = 0; buffer_zero[1] = false }
	:: atomic { buffer[1] != EMPTY && !buffer_zero[1] -> held[1] = buffer[1]; buffer[1] = EMPTY }
	od
}

/* visit; `v` is the owner's seat. Sets `in`. */
inline visit()
{
	atomic { !gate -> gate = true }
	v = owner;
	wanted[v] = true;
#ifndef BREAK_NO_MEMBARRIER /* visit: no membarrier */
	atomic { DRAIN(v) }
#endif
	if
	:: held[v] == 0 -> in = true
	:: held[v] == 1 -> wanted[v] = false; gate = false /* not for long: BUSY, unvisit */
	fi
}

proctype visitor()
{
	byte n, v;
	bool in;

	do
	:: n < VISITS ->
		visit();
		if
		:: in -> COME_IN; GO_OUT; wanted[v] = false; gate = false; in = false /* unvisit */
		:: else
		fi;
		n++
	:: else -> break
	od
}

/* evict, by another thread: the lane goes to seat 1. */
proctype evictor()
{
	byte v;
	bool in;

	visit();
	if
	:: in ->
		has[0] = false; /* wanted stays up */
		owner = 1;
		has[1] = true;
		gate = false
	:: else
	fi
}

/* The thread of seat s. */
proctype thread(byte s)
{
	byte n;
	bool by_gate;

end_spare: /* a thread without a lane; seat 1's waits to be given one */
	has[s] || s == 0;
	do
	:: n < ENTRIES -> /* enter */
#ifdef BREAK_LOAD_FIRST /* enter: wanted loaded before held is stored */
		if
		:: wanted[s] -> goto slowly
		:: else
		fi;
		atomic { STORE_HELD(1) }
		goto entered;
#else
		atomic { STORE_HELD(1) }
		if
		:: !wanted[s] -> goto entered
		:: else
		fi;
		atomic { STORE_HELD(0) }
#endif
slowly:		do
#ifdef BREAK_COME_BACK_BLINDLY /* enter: seat.w not looked at again once the gate is locked */
		:: atomic { !gate -> gate = true; DRAIN(s) } by_gate = true; break
#else
		:: !has[s] -> goto step_back
		:: has[s] ->
			atomic { !gate -> gate = true; DRAIN(s) }
			if
			:: has[s] -> by_gate = true; break
			:: else -> gate = false
			fi
#endif
		od;
entered:	COME_IN;
		GO_OUT;
		n++;
		if /* leave */
		:: by_gate -> by_gate = false; gate = false
		:: else -> atomic { STORE_HELD(0) }
		fi
	:: n == ENTRIES -> break
	od;
step_back: /* its process is posted as ready, and the thread becomes a spare */
	skip
}

proctype quiet()
{
	timeout;
	assert(!gate && inside == 0);
	assert(buffer[0] == EMPTY && buffer[1] == EMPTY);
	assert(held[0] == 0 && held[1] == 0)
}

init
{
	atomic {
		has[0] = true; buffer[0] = EMPTY; buffer[1] = EMPTY;
		run memory(); run thread(0); run thread(1); run visitor(); run evictor(); run quiet()
	}
}
