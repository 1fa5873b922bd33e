/* models/mailbox.pml - a mailbox: senders, its owner, its end; room in a full port.
 *
 * Models:     deliver, claim_owner, hd__deliver_surely, let_in, hd__take_letter, hd__mailbox_close (port/mailbox.c), hd_receive
 *             (port/receive.c), withdraw (wait/wait.c).
 * Scenario:   one port with room for one letter, whose policy is to wait; three senders with a letter each; an owner that receives a few
 *             times and ends. One deadline of the owner's wait and one of a sender's come, at any time.
 * Holds:      each letter is received, or dropped by the owner's end, or its sender's again: one of these, once. No process waits for ever.
 *
 * A statement, a d_step and an atomic block are one access each to what threads share. */

#define SENDERS 3
#define NONE SENDERS
#define LOCK(l) atomic { !l -> l = true }

mtype = { MINE, ARRIVED, RECEIVED, DROPPED }		 /* a letter: its sender's; ... */
mtype = { IDLE, WAITING, GRANTED, CLOSED, TIMED_OUT } /* a wait */

mtype where[SENDERS] = MINE;
chan line = [SENDERS] of { byte }; /* what has arrived */
bool lock, room;		   /* the mailbox's lock; that of the port's queue of senders */
bool closed;

mtype owners = IDLE; /* the wait of the owner, */
bool linked;	     /* its record in the queue, */
byte handed = NONE;  /* what it was handed, */
bool woken;	     /* and unparked */
mtype senders[SENDERS] = IDLE;
bool slinked[SENDERS], swoken[SENDERS];
byte deadlines[2] = 1; /* of the owner, of senders */
byte done;

/* let_in, under the mailbox's lock: the first sender that waits. */
inline let_in(n)
{
	LOCK(room);
	n = 0;
	do
	:: n < SENDERS && slinked[n] -> slinked[n] = false;
		if
		:: atomic { senders[n] == WAITING -> senders[n] = GRANTED }; break /* hd__waitq_claim_one */
		:: senders[n] != WAITING -> n++
		fi
	:: n < SENDERS && !slinked[n] -> n++
	:: n == SENDERS -> break
	od;
	room = false;
	if
	:: n < SENDERS -> atomic { assert(where[n] == MINE); where[n] = ARRIVED; line!n }
	:: else
	fi
}

proctype sender(byte me)
{
	LOCK(lock);
	if
#ifndef BREAK_SEND_TO_CLOSED /* deliver: into a mailbox that is closed */
	:: closed -> lock = false /* -ESRCH */
#endif
	:: !closed && len(line) == 0 -> /* it has room: deliver */
		if
		:: linked -> linked = false;
#ifdef BREAK_HAND_OVER_UNCLAIMED /* claim_owner: the owner's time was up before */
			atomic { owners = (owners == WAITING -> GRANTED : owners); handed = me; where[me] = RECEIVED };
			lock = false; woken = true
#else
			if
			:: atomic { owners == WAITING -> owners = GRANTED }; handed = me; where[me] = RECEIVED;
				lock = false; woken = true
			:: owners != WAITING -> atomic { where[me] = ARRIVED; line!me }; lock = false
			fi
#endif
		:: !linked -> atomic { where[me] = ARRIVED; line!me }; lock = false
		fi
	:: !closed && len(line) > 0 ->
#ifdef BREAK_ROOM_BEFORE_LOCK /* hd__deliver_surely: the mailbox is unlocked before the queue of senders is locked */
		lock = false; LOCK(room);
#else
		LOCK(room);
#endif
		senders[me] = WAITING; slinked[me] = true;
#ifndef BREAK_ROOM_BEFORE_LOCK
		lock = false;
#endif
		room = false;
		swoken[me];
		if
		:: senders[me] == GRANTED -> assert(where[me] != MINE)
		:: else -> assert(where[me] == MINE) /* -ETIMEDOUT, -ESRCH */
		fi
#ifdef BREAK_SEND_TO_CLOSED
	:: closed -> atomic { where[me] = ARRIVED; line!me }; lock = false
#endif
	fi;
	done++
}

proctype owner()
{
	byte l, n, times;

	do
	:: times < 2 -> times++;
#ifdef BREAK_LOOK_BEFORE_LOCK /* hd_receive: whether there is a letter is seen without the lock */
		if
		:: empty(line) -> LOCK(lock); goto waits
		:: nempty(line)
		fi;
#endif
		LOCK(lock);
		if
		:: nempty(line) -> atomic { line?l; assert(where[l] == ARRIVED); where[l] = RECEIVED };
			let_in(n);
			lock = false;
			if
			:: n < SENDERS -> swoken[n] = true
			:: else
			fi
		:: empty(line) ->
#ifdef BREAK_LOOK_BEFORE_LOCK
waits:
#endif
			owners = WAITING; linked = true;
			lock = false;
			woken;
			if
			:: owners == GRANTED -> assert(handed != NONE); handed = NONE
			:: owners == TIMED_OUT -> assert(handed == NONE)
			fi;
			owners = IDLE; woken = false
		fi
	:: break
	od;
	LOCK(lock); /* hd__mailbox_close */
	closed = true;
	do
	:: nempty(line) -> atomic { line?l; where[l] = DROPPED }
	:: empty(line) -> break
	od;
	LOCK(room);
#ifndef BREAK_CLOSE_FORGETS_SENDERS /* hd__mailbox_close: the senders that wait are not told */
	n = 0;
	do
	:: n < SENDERS && slinked[n] -> slinked[n] = false;
		if
		:: atomic { senders[n] == WAITING -> senders[n] = CLOSED }; swoken[n] = true
		:: senders[n] != WAITING
		fi;
		n++
	:: n < SENDERS && !slinked[n] -> n++
	:: n == SENDERS -> break
	od;
#endif
	room = false;
	lock = false;
	done++
}

/* hd__wait_expired: decides without a lock, then takes the record out. */
proctype clock()
{
	byte n;

end_rests:
	do
	:: atomic { deadlines[0] && owners == WAITING -> owners = TIMED_OUT; deadlines[0] = 0 };
		LOCK(lock); linked = false; lock = false; woken = true
	:: atomic { deadlines[1] && senders[0] == WAITING -> senders[0] = TIMED_OUT; deadlines[1] = 0 };
		LOCK(room); slinked[0] = false; room = false; swoken[0] = true
	od
}

proctype quiet()
{
	byte i;

	timeout;
	assert(done == SENDERS + 1);
	do
	:: i < SENDERS -> assert(where[i] != ARRIVED); i++
	:: else -> break
	od
}

init
{
	atomic { run owner(); run sender(0); run sender(1); run sender(2); run clock(); run quiet() }
}
