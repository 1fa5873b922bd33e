/* models/direct.pml - the answer to a call without a lock, when no other thread can come by its reply port.
 *
 * Models:     hd_reply (port/direct.c); hd__reply_slowly, hd__answer, hd__reply_release, abandon, prepare (port/call.c); the lanes.
 * Scenario:   a caller waits, at home with worker 0 or 1. A process on worker 0 has its message, and answers. Another thread may have a reference to the
 *             reply port too: it answers, or does not, and gives the reference up; if it has claimed the caller, that comes home to its worker. A
 *             cancel comes to the caller's home. The caller goes on, and uses the reply port again if no other thread has a reference.
 * Holds:      the call ends once, and the caller is woken once; one thread at a time is at what the reply port has.
 *
 * A statement, a d_step and an atomic block are one access each to what threads share. */

#define LOCK atomic { !lock -> lock = true; touch() }
#define ENTER(n) atomic { !lane[n] -> lane[n] = true }
#define LEAVE(n) lane[n] = false

mtype = { ASKED, ANSWERED, BROKEN, ABANDONED };
mtype state = ASKED;
byte refs;
bool lock;
bool lane[2];
byte home;
bool waits = true; /* the wait is not decided */
byte wakes;	   /* the caller is ready */
byte at_port;	   /* threads that read or write what the reply port has */

/* For the check alone. */
byte ends, done;

inline touch()
{
	at_port++;
	assert(at_port == 1)
}

inline unlock()
{
	at_port--;
	lock = false
}

/* decide, under the lock. */
inline decide(how, claimed)
{
	atomic {
		claimed = waits;
		if
		:: waits -> waits = false; state = how; ends++
		:: else -> state = ABANDONED
		fi
	}
}

/* release, under the lock, which it releases: when the reference is gone, what the port has is others'. */
inline release()
{
	atomic { refs--; at_port-- };
	lock = false
}

/* The message of the call has been received, by a process on worker 0: it answers once, and drops the message. */
proctype replier()
{
	bool claimed;

	ENTER(0);
	if
#ifdef BREAK_ANY_REFERENCES /* hd_reply: another thread may have a reference */
	:: state == ASKED && home == 0 && waits ->
#else
#ifdef BREAK_ANY_HOME /* hd_reply: the caller's home may be another worker, on which it is cancelled */
	:: refs == 2 && state == ASKED && waits ->
#else
	:: refs == 2 && state == ASKED && home == 0 && waits ->
#endif
#endif
		touch(); /* no lock */
		state = ANSWERED;
		atomic { waits = false; ends++ };
		at_port--;
		refs = refs - 1;
		wakes++
	:: true ->
		LOCK;
		if
		:: state == ASKED -> decide(ANSWERED, claimed)
		:: else
		fi;
		release();
		if
		:: claimed -> wakes++
		:: else
		fi
	fi;
	LEAVE(0);
	done++
}

/* A thread on worker 1 that has a reference too. */
proctype other()
{
	bool claimed;

	ENTER(1);
	if
	:: true -> /* hd_send to the reply port */
		LOCK;
		if
		:: state == ASKED -> decide(ANSWERED, claimed)
		:: else
		fi;
		unlock();
		if
		:: claimed -> home = 1; wakes++ /* adopt, hd__unpark */
		:: else
		fi
	:: true
	fi;
	claimed = false;
	LOCK; /* hd__reply_release */
#ifdef BREAK_RELEASE_FIRST /* the reference is given up before the look whether it was the last one */
	refs--;
	if
	:: state == ASKED && refs == 1 -> decide(BROKEN, claimed)
	:: else
	fi;
	unlock();
#else
	if
	:: state == ASKED && refs == 2 -> decide(BROKEN, claimed)
	:: else
	fi;
	release();
#endif
	if
	:: claimed -> home = 1; wakes++
	:: else
	fi;
	LEAVE(1);
	done++
}

/* On the caller's home. */
proctype canceller()
{
	byte at = home;

	ENTER(at);
	if
	:: home == at && waits ->
		atomic {
			if
			:: waits -> waits = false; ends++
			:: else -> goto out
			fi
		};
		LOCK; /* withdraw, abandon */
		if
		:: state == ASKED -> state = ABANDONED
		:: else
		fi;
		unlock();
		wakes++
	:: true
	fi;
out:
	LEAVE(at);
	done++
}

proctype caller()
{
	wakes > 0;
	assert(!waits);
	ENTER(home);
	if
	:: refs == 1 -> touch(); assert(state != ASKED); at_port-- /* prepare: its next call */
	:: refs != 1 /* a new reply port */
	fi;
	LEAVE(home);
	done++
}

proctype quiet(byte all)
{
	timeout;
	assert(done == all && ends == 1 && wakes == 1 && refs == 1 && !lock)
}

init
{
	atomic {
		if
		:: home = 0
		:: home = 1
		fi;
		run replier(); run canceller(); run caller();
		if
		:: refs = 3; run other(); run quiet(4)
		:: refs = 2; run quiet(3)
		fi
	}
}
