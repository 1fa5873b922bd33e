/* models/call.pml - circles of calls: publish, deliver, walk twice, take back; calls that are passed on: publish, walk twice, keep or deliver; and the answer
 * that comes before its caller waits.
 *
 * Models:     begin_calling, leads_back, is_refused, call, await, decide, answer, hd__reply_delegate (port/call.c).
 * Scenario:   three processes, each on a worker of its own. Each calls the next one, or does not, and answers the one before it, in either
 *             order. A process that waits for its answer answers nothing. The first ones may call through an office, a process that passes
 *             the call on to the next one, or answers it itself if it is refused.
 * Holds:      all calls end: answered, or refused because they would have closed a circle; at least one of a circle is refused; none is
 *             refused unless all three were calling at once, each the next.
 *
 * A statement, a d_step and an atomic block are one access each to what threads share. */

#ifndef N
#define N 3
#endif
#ifndef OFFICES
#define OFFICES 2
#endif
#define NEXT(i) (((i) + 1) % N)
#define BEFORE(i) (((i) + N - 1) % N)
#define OFFICE N /* any of them: none waits for a call */

bool calls[N];	  /* p->why is HD_WAIT_CALL */
byte to[N];	  /* p->arrival, r->to */
bool at_office[N]; /* its call is in the port of its office */
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

/* leads_back, from the one after `me` */
inline walk(found)
{
	at = NEXT(me);
	found = false;
	do
	:: at == me -> found = true; break
	:: at == OFFICE -> break
	:: else ->
		if
		:: calls[at] -> at = to[at]
		:: else -> break
		fi
	od;
	at = 0
}

/* For the check alone: the moment between the two walks. */
inline look_at_all()
{
	d_step {
		at = 0; all = true;
		do
		:: at < N -> all = all && (at == me || (calling[at] && to[at] == NEXT(at))); at++
		:: else -> break
		od;
		at = 0
	}
}

inline answer(whom)
{
	atomic { !locked[whom] -> locked[whom] = true };
	atomic { assert(asked[whom]); answered[whom] = true; calling[whom] = false };
	if
#ifdef BREAK_ANSWER_KEEPS_WHY /* decide: a caller that does not wait yet still says that it does */
	:: waits[whom] -> calls[whom] = false
	:: else
#else
	:: true -> calls[whom] = false
#endif
	fi;
	first = waits[whom];
	locked[whom] = false;
	if
	:: first -> woken[whom] = true
	:: else
	fi;
	first = false
}

/* await */
inline wait_for_answer()
{
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
	assert(answered[me] && !calls[me]);
	first = false
}

inline call()
{
#ifndef BREAK_NO_FENCE /* call: what it says is seen by others only after it has looked */
	to[me] = NEXT(me);
	atomic { calls[me] = true; calling[me] = true };
#endif
	atomic { letter[NEXT(me)] = true; asked[me] = true }; /* hd__deliver_surely, under the mailbox's lock */
	walk(first); /* hd__arch_fence_after_lock comes first */
	look_at_all();
	if
#ifdef BREAK_WALK_ONCE /* is_refused: what it saw need not have been there at once */
	:: first -> again = true
#else
	:: first -> walk(again)
#endif
	:: else
	fi;
#ifdef BREAK_NO_FENCE
	to[me] = NEXT(me);
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
	:: else -> wait_for_answer()
	fi;
	d_step { first = false; again = false; all = false }
}

/* As call, through an office. No process waits for one that waits for an office. */
inline call_office()
{
	to[me] = OFFICE;
	atomic { calls[me] = true; calling[me] = true };
	atomic { at_office[me] = true; asked[me] = true };
	wait_for_answer()
}

/* The office of `me` passes its call on: hd__reply_delegate, then hd__deliver_surely. */
proctype office(byte me)
{
	byte at;
	bool first, again, all;

	do
	:: atomic { at_office[me] -> at_office[me] = false };
#ifndef BREAK_LOOK_BEFORE_SAYING /* hd__reply_delegate: a process that calls at the same time sees nothing either */
		to[me] = NEXT(me);
#endif
		walk(first);
		look_at_all();
		if
#ifdef BREAK_DELEGATE_ONCE /* waits_for: what it saw need not have been there at once */
		:: first -> again = true
#else
		:: first -> walk(again)
#endif
		:: else
		fi;
#ifdef BREAK_LOOK_BEFORE_SAYING
		to[me] = NEXT(me);
#endif
		if
#ifndef BREAK_DELEGATE_ALWAYS
		:: first && again ->
			assert(all);
			to[me] = OFFICE;
			d_step { first = false; again = false; all = false };
			answer(me)
		:: else -> letter[NEXT(me)] = true
#else
		:: true -> letter[NEXT(me)] = true
#endif
		fi;
		d_step { first = false; again = false; all = false }
	:: over[me] && !at_office[me] -> break
	od
}

proctype process(byte me)
{
	byte at;
	bool first, again, all;

	do
	:: !over[me] -> call(); over[me] = true
	:: !over[me] && me < OFFICES -> call_office(); over[me] = true
	:: !over[me] -> over[me] = true
	:: atomic { letter[me] -> letter[me] = false } answer(BEFORE(me))
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
		:: i < N -> run process(i);
			if
			:: i < OFFICES -> run office(i)
			:: else
			fi;
			i++
		:: else -> break
		od;
		run quiet()
	}
}
