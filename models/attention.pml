/* models/attention.pml - the inbox, the attention word, and the decision of a wait.
 *
 * Models:     hd__raise, hd__post and doze (sched/worker.c), hd__take_news (sched/sched.c), the inbox (base/inbox.h), claim,
 *             decide, unpark and expiry (wait/wait.h, wait/wait.c), the watcher's visit (look_into_lane in sched/watcher.c).
 * Scenario:   two workers, and a thread that is none. Process 0 is at home on worker 0, process 1 on worker 1; process 2 may
 *             move while it is ready and no request to it is on its way. Whoever runs signals others, a few times in all, and waits. The thread signals once, and
 *             posts one request about process 2, as suspend would. A few deadlines come. The watcher visits lanes, and applies notes
 *             there. Numbers of waits and adoption are wait.pml's.
 * Holds:      a process is woken once for each wait, at home, after the wait was decided; a note is in one inbox at a time;
 *             a request finds its process at home.
 *             When nothing moves any more, nobody who was granted waits, no inbox has a note, the request has been applied.
 *             A poster that loses its CPU for ever between its push and its raise takes nobody else's note with it.
 *
 * A statement, a d_step and an atomic block are one access each to what threads share. */

#ifndef SIGNALS
#define SIGNALS 1 /* sent by processes, in all */
#endif
#ifndef DEADLINES
#define DEADLINES 1
#endif

#define WORKERS 2
#define PROCESSES 3
#define THREAD WORKERS /* whoever is no worker */
#define MOVABLE 2      /* the process that may move */

#define NONE 0
#define WAKE(p) ((p) + 1) /* each process's wake is a note */
#define REQUEST 4	  /* and so is the request */
#define NOTES 5

#define ASLEEP 1
#define INBOX 2

#define BIT(n) (1 << (n))
#define CHOOSE(p) if :: p = 0 :: p = 1 :: p = 2 fi

mtype = { RUNNING, READY, WAITING }

byte attention[WORKERS];
bool in_futex[WORKERS]; /* the kernel's: it sleeps until it is woken */
byte last[WORKERS];	/* the inbox: its newest note */
byte next[NOTES];	/* the note before this one */

bool lane[WORKERS];
byte home[PROCESSES];
mtype state[PROCESSES];
bool decided[PROCESSES]; /* its wait's outcome is not HD__WAITING any more */
bool linked[PROCESSES];	 /* in its wait queue, which is its alone */
bool locked[PROCESSES];	 /* that queue's lock */

bool nudged; /* HD__NUDGED of the process that may move */

byte signals = SIGNALS, deadlines = DEADLINES;

/* For the checks alone. */
byte posted;  /* the notes that are posted and not yet applied, a set */
byte stalled; /* the note whose poster has lost its CPU for ever */
byte applied; /* how often the request was */

/* base/inbox.h: hd__inbox_push. `seen` is the caller's. */
inline push(to, n)
{
	d_step {
		assert(!(posted & BIT(n))); /* a note is in one inbox at a time */
		posted = posted | BIT(n);
#ifdef BREAK_ASK_THE_INBOX
		seen = last[to];
#endif
		next[n] = last[to];
		last[to] = n
	}
}

/* sched/worker.c: hd__raise. `old` is the caller's. */
inline raise(to, why)
{
	d_step { old = attention[to]; attention[to] = old | why }
	if
	:: old & ASLEEP -> d_step { in_futex[to] = false; old = 0 } /* poller->wake */
	:: else -> old = 0
	fi
}

/* sched/worker.c: hd__post, after its push. */
inline tell(to)
{
#ifdef BREAK_ASK_THE_INBOX /* hd__post: "was the inbox empty?" in place of "is the bit up?" */
#else
#ifdef BREAK_TEST_BEFORE_PUSH
#else
	seen = attention[to] & INBOX;
#endif
#endif
	if
	:: seen -> seen = 0
	:: else -> raise(to, INBOX)
	fi
}

inline post(to, n)
{
#ifdef BREAK_TEST_BEFORE_PUSH /* hd__post: the test of HD__INBOX moved above hd__inbox_push */
	seen = attention[to] & INBOX;
#endif
	push(to, n);
	tell(to)
}

/* sched/switch.h: hd__make_ready. */
inline make_ready(p)
{
	d_step {
		assert(home[p] == w && state[p] == WAITING && decided[p]);
		state[p] = READY
	}
}

/* wait/wait.h: hd__decide. One compare-and-swap. */
#define DECIDE(p)                                       \
	if                                              \
	:: !decided[p] -> decided[p] = true; won = true \
	:: else                                         \
	fi

/* wait/wait.h: hd__waitq_claim by worker `w`, or by no worker. Sets `won`. What a lock guards needs no steps of its own; so
 * the lock is seen to be held only where what it guards is not all that is touched. */
inline claim(p)
{
	atomic {
		!locked[p];
		if
		:: !linked[p]
		:: else -> linked[p] = false;
			if
#ifdef BREAK_GRANT_WITHOUT_CAS /* hd__decide: a load and a store in place of "cas_acq_rel" */
			:: true -> locked[p] = true; held = true
#else
			:: home[p] == w -> locked[p] = true; held = true
			:: else -> DECIDE(p)
#endif
			fi
		fi
	}
	if
	:: held -> held = false; /* hd__decide_locked: its timeout is decided on this worker too, so nobody comes between load and store */
		if
		:: !decided[p] -> d_step { decided[p] = true; won = true; locked[p] = false }
		:: else -> locked[p] = false
		fi
	:: else
	fi
}

/* wait/wait.c: hd__wait_expired, on the home worker. */
inline expire(p)
{
	d_step { DECIDE(p) }
	if
	:: atomic { won && !locked[p] -> won = false; linked[p] = false; make_ready(p) } /* withdraw: under the queue's lock */
	:: !won /* a grant came first, and its wake is on the way */
	fi
}

/* What a note's `apply` does. */
inline apply(n)
{
	posted = posted & ~BIT(n);
	if
	:: n == REQUEST ->
		atomic { assert(home[MOVABLE] == w); applied++; nudged = false } /* life/steer.c: apply_nudge */
	:: else -> make_ready(n - 1)
	fi
}

/* base/inbox.h: hd__inbox_take_owner. */
inline take_inbox()
{
	d_step { /* takes all, oldest first */
		n = last[w];
		last[w] = NONE;
		do
		:: n != NONE -> seen = next[n]; next[n] = mine; mine = n; n = seen
		:: else -> break
		od;
		seen = 0
	}
}

inline apply_all()
{
	do
	:: mine != NONE ->
		d_step { n = mine; mine = next[n]; next[n] = NONE }
		apply(n);
		n = NONE
	:: else -> break
	od
}

/* sched/sched.c: hd__take_news. */
inline take_news()
{
	if
	:: attention[w] == 0
	:: else ->
#ifdef BREAK_CLEAR_LATE /* hd__take_news: "xchg_seq(&w->attention, 0)" moved below hd__inbox_take_owner */
		bits = attention[w];
#else
		d_step { bits = attention[w]; attention[w] = 0 }
#endif
		if
		:: bits & INBOX ->
			take_inbox();
#ifdef BREAK_CLEAR_LATE
			attention[w] = 0;
#endif
			apply_all()
		:: else
#ifdef BREAK_CLEAR_LATE
			-> attention[w] = 0
#endif
		fi;
		bits = 0
	fi
}

/* sched/worker.c: doze. */
inline doze()
{
#ifdef BREAK_DOZE_BY_STORE /* doze: a load and a store in place of "cas_seq(&w->attention, &none, HD__ASLEEP)" */
	if
	:: attention[w] == 0 -> attention[w] = ASLEEP; bits = ASLEEP
	:: else
	fi;
#else
	d_step {
		if
		:: attention[w] == 0 -> attention[w] = ASLEEP; bits = ASLEEP
		:: else
		fi
	}
#endif
	if
	:: bits == ASLEEP -> bits = 0;
		d_step { in_futex[w] = (attention[w] == ASLEEP) } /* futex_wait looks once more, and sleeps */
end_asleep:	if
		:: !in_futex[w]
		:: deadlines > 0 -> in_futex[w] = false /* one has come, perhaps of nobody who still waits */
		fi
	:: else
	fi
}

#define IS_READY(p) (home[p] == w && state[p] == READY)

proctype worker(byte w)
{
	byte me = PROCESSES; /* who runs; PROCESSES is nobody */
	byte to = THREAD, p, n, mine, bits, old, seen;
	bool won, held;

	do
	:: atomic { !lane[w] -> lane[w] = true } /* hd__enter */
		take_news();
		if
		/* the runner signals somebody */
		:: atomic { me != PROCESSES && signals > 0 -> signals--; CHOOSE(p) }
			claim(p);
			if
			:: atomic { won && home[p] == w -> won = false; make_ready(p) }
			:: atomic { won && home[p] != w -> won = false; to = home[p] } post(to, WAKE(p)); to = THREAD
			:: !won
			fi;
			p = 0
		/* the runner waits: until it is off its stack other threads can only post its wake (wait.pml), so this is one step */
		:: atomic { me != PROCESSES && !locked[me] ->
			d_step { decided[me] = false; linked[me] = true; state[me] = WAITING; me = PROCESSES } }
		/* a deadline has come */
		:: atomic { deadlines > 0 -> deadlines--; CHOOSE(p);
			if
			:: home[p] == w && state[p] == WAITING
			:: else -> p = PROCESSES /* it is nobody's any more */
			fi }
			if
			:: p != PROCESSES -> expire(p)
			:: else
			fi;
			p = 0
		/* somebody is ready, or nobody */
		:: atomic { me == PROCESSES ->
				if
				:: IS_READY(0) -> me = 0
				:: IS_READY(1) -> me = 1
#ifdef BREAK_MOVE_WHILE_NUDGED /* hd__move_home: HD__NUDGED not looked at */
				:: state[MOVABLE] == READY -> me = MOVABLE; home[MOVABLE] = w
#else
				:: state[MOVABLE] == READY && (home[MOVABLE] == w || !nudged) -> me = MOVABLE; home[MOVABLE] = w
#endif
				:: else -> goto nobody
				fi;
				state[me] = RUNNING
			}
		fi;
		goto go_on;
nobody:		lane[w] = false;
		doze();
		goto awake;
go_on:		lane[w] = false;
awake:		skip
	od
}

/* The watcher, inside the lane of w, which has not looked at its notes for a while. HD__INBOX stays up. */
active proctype watcher()
{
	byte w, n, mine, seen;

end_looks:
	do
	:: atomic {
			if
			:: !lane[0] && attention[0] & INBOX && last[0] != NONE -> w = 0
			:: !lane[1] && attention[1] & INBOX && last[1] != NONE -> w = 1
			fi;
#ifndef BREAK_VISIT_WITHOUT_LANE /* look_into_lane: no hd__visit */
			lane[w] = true
#endif
		}
		take_inbox();
		apply_all();
#ifndef BREAK_VISIT_WITHOUT_LANE
		lane[w] = false
#endif
	od
}

active proctype thread()
{
	byte w = THREAD, to, p, old, seen;
	bool won, held;

	CHOOSE(p);
	claim(p);
	if
	:: won -> to = home[p]; push(to, WAKE(p));
		if
		:: tell(to)
		:: stalled = WAKE(p); goto end_stalled
		fi
	:: else
	fi;
	nudged = true; /* life/steer.c: change_word sets HD__NUDGED, and only then is its home looked at */
	d_step { to = home[MOVABLE]; p = 0; won = false }
	post(to, REQUEST);
end_stalled:
	deadlines = 0 /* those that are left are far away */
}

/* When nothing moves any more. */
active proctype quiet()
{
	byte i;

	timeout;
	d_step {
		do
		:: i < PROCESSES ->
			assert(state[i] == WAITING);
			assert(!decided[i] || stalled == WAKE(i));
			i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < WORKERS ->
			assert(attention[i] == ASLEEP);
			assert(last[i] == NONE || (last[i] == stalled && next[stalled] == NONE));
			i++
		:: else -> break
		od;
		assert(applied == 1 || stalled != NONE)
	}
}

init
{
	atomic {
		home[1] = 1;
		state[0] = READY; state[1] = READY; state[2] = READY;
		decided[0] = true; decided[1] = true; decided[2] = true;
		run worker(0); run worker(1)
	}
}
