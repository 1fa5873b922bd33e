/* models/call.pml - circles of calls: publish, deliver, walk twice, take back; and the answer that comes before its caller waits.
 *
 * Models:     begin_calling, leads_back, is_refused, call, await, decide, answer (port/call.c).
 * Scenario:   three processes, each on a worker of its own. Each calls the next one, or does not, and answers the one before it, in either
 *             order. A process that waits for its answer answers nothing.
 * Holds:      all calls end: answered, or refused because they would have closed a circle; at least one of a circle is refused; none is
 *             refused unless all three were calling at once.
 *
 * A statement, a d_step and an atomic block are one access each to what threads share. p->arrival does not change here: it is the next one. */

#ifndef N
#define N 3
#endif
#define NEXT(i) (((i) + 1) % N)
#define BEFORE(i) (((i) + N - 1) % N)

bool calls[N];	  /* p->why is HD_WAIT_CALL */
bool letter[N];	  /* the call of the one before is in its port */
bool answered[N]; /* r->state */
bool waits[N];	  /* r->waits */
bool woken[N];	  /* and unparked */
bool locked[N];	  /* the lock of its reply port */
bool over[N];	  /* it makes no more calls */
bool ended[N];

/* For the check alone. */
bool asked[N];	 /* its message was delivered, and not taken back */
bool calling[N]; /* it has published its call, which is neither answered nor refused */

/* leads_back */
inline walk(found)
{
	at = NEXT(me);
	found = false;
	do
	:: at == me -> found = true; break
	:: at != me ->
		if
		:: calls[at] -> at = NEXT(at)
		:: else -> break
		fi
	od;
	at = 0
}

inline call()
{
#ifndef BREAK_NO_FENCE /* call: what it says is seen by others only after it has looked */
	atomic { calls[me] = true; calling[me] = true };
#endif
	atomic { letter[NEXT(me)] = true; asked[me] = true }; /* hd__deliver_surely, under the mailbox's lock */
	walk(first); /* hd__arch_fence_after_lock comes first */
	d_step { /* the moment between the two walks */
		at = 0; all = true;
		do
		:: at < N -> all = all && (calling[at] || at == me); at++
		:: else -> break
		od;
		at = 0
	}
	if
#ifdef BREAK_WALK_ONCE /* is_refused: what it saw need not have been there at once */
	:: first -> again = true
#else
	:: first -> walk(again)
#endif
	:: else
	fi;
#ifdef BREAK_NO_FENCE
	atomic { calls[me] = true; calling[me] = true };
#endif
	if
	:: first && again ->
		atomic { /* under the mailbox's lock: if it is not there any more, the next one has gone on */
#ifdef BREAK_TAKE_BACK_BLINDLY /* is_refused: refused though the message has been received */
			letter[NEXT(me)] = false
#else
			again = letter[NEXT(me)]; letter[NEXT(me)] = false
#endif
		}
	:: else
	fi;
	if
	:: first && again ->
		assert(all);
		atomic { calls[me] = false; calling[me] = false; asked[me] = false } /* till then, others are refused because of it */
	:: else ->
#ifdef BREAK_LOOK_BEFORE_LOCK /* await: the state is read without the lock */
		first = answered[me];
		atomic { !locked[me] -> locked[me] = true };
#else
		atomic { !locked[me] -> locked[me] = true };
		first = answered[me];
#endif
		if
		:: first -> locked[me] = false; calls[me] = false /* end_calling */
		:: else -> waits[me] = true; locked[me] = false;
			woken[me]
		fi;
		assert(answered[me] && !calls[me])
	fi;
	d_step { first = false; again = false; all = false }
}

/* hd_receive, answer */
inline reply()
{
	atomic { !locked[BEFORE(me)] -> locked[BEFORE(me)] = true };
	atomic { assert(asked[BEFORE(me)]); answered[BEFORE(me)] = true; calling[BEFORE(me)] = false };
	if
#ifdef BREAK_ANSWER_KEEPS_WHY /* decide: a caller that does not wait yet still says that it does */
	:: waits[BEFORE(me)] -> calls[BEFORE(me)] = false
	:: else
#else
	:: true -> calls[BEFORE(me)] = false
#endif
	fi;
	first = waits[BEFORE(me)];
	locked[BEFORE(me)] = false;
	if
	:: first -> woken[BEFORE(me)] = true
	:: else
	fi;
	first = false
}

proctype process(byte me)
{
	byte at;
	bool first, again, all;

	do
	:: !over[me] -> call(); over[me] = true
	:: !over[me] -> over[me] = true
	:: atomic { letter[me] -> letter[me] = false } reply()
	:: over[me] && over[BEFORE(me)] && !letter[me] -> break
	od;
	ended[me] = true
}

proctype quiet()
{
	byte i;

	timeout;
	do
	:: i < N -> assert(ended[i] && !calls[i] && !letter[i]); i++
	:: else -> break
	od
}

init
{
	byte i;

	atomic {
		do
		:: i < N -> run process(i); i++
		:: else -> break
		od;
		run quiet()
	}
}
