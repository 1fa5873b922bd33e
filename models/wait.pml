/* models/wait.pml - the end of a wait: a grant against a deadline, numbers, adoption, and the account of the heaps.
 *
 * Models:     sleep, hd__is_off_stack, hd__decide, hd__decide_locked, hd__end_wait (wait/wait.h), adopt, hd__unpark_elsewhere, hd__wait_expired (wait/wait.c),
 *             hd__timers_take_due, hd__timers_forget, hd__timers_orphan (timer/).
 * Scenario:   two workers, and process P, which waits in a queue a few times, each time with a deadline in the heap of its home. A
 *             process of either worker grants: inside its own lane, it adopts P, or cannot and posts a wake. Deadlines come at any
 *             time, also old ones, in either heap, inside that lane. P can be claimed before it is off its stack.
 * Holds:      each wait ends once, a deadline ends its own wait and no other, and at home; each heap's entries less the stale and the orphans
 *             are, at the end, those that are waited for.
 *
 * A statement, a d_step and an atomic block are one access each to what threads share. */

#ifndef WAITS
#define WAITS 3
#endif
#define WORKERS 2
#define BIT(n) (1 << (n))

mtype = { RUNNING, WAITING }

bool lane[WORKERS];
bool on_stack; /* P has begun to wait, and its context is not saved */
bool wake[WORKERS]; /* P's wake is in this inbox */
byte heap[WORKERS]; /* the numbers in it, a set */
short live[WORKERS]; /* count - stale - orphans */

byte number;	/* P's wait word: the number of its deadline, 0: none; */
bool decided;	/* and whether the outcome is not HD__WAITING any more */
bool linked;	/* in the wait queue, whose lock is held for one step */
bool locked;
byte home;
mtype state = RUNNING;
byte waits; /* the number of P's present wait, which its deadline has too */

/* Inside the lane of w, P's home: the wait is over, P goes on. */
#define GO_ON assert(home == w && state == WAITING && decided && !on_stack); state = RUNNING

proctype worker(byte w)
{
	byte n, to;
	bool mine, stays;

end_rests:
	do
	/* P waits: it is published by the queue's lock, and then leaves its stack, inside its lane */
	:: atomic { !lane[w] && !locked && state == RUNNING && home == w && waits < WAITS -> lane[w] = true;
			waits++; number = waits; decided = false; linked = true; state = WAITING; on_stack = true;
			heap[w] = heap[w] | BIT(waits); live[w]++
		}
		on_stack = false; /* hd__arch_switch stores context.ip */
		lane[w] = false
	/* a note: apply_wake, hd__end_wait */
	:: atomic { !lane[w] && wake[w] -> wake[w] = false;
			if :: number -> number = 0; live[w]-- :: else fi;
			GO_ON
		}
	/* another process grants: hd__waitq_claim */
	:: atomic { !lane[w] && !locked && linked -> lane[w] = true; linked = false; locked = true }
#ifdef BREAK_GRANT_WITHOUT_CAS /* hd__decide_locked: no compare-and-swap, whose P's home it is */
		if
		:: decided
		:: !decided -> decided = true; mine = true
		fi;
#else
		if
		:: home == w -> /* hd__decide_locked: a load, a store */
			if
			:: decided
			:: !decided -> decided = true; mine = true
			fi
		:: home != w -> atomic { if :: !decided -> decided = true; mine = true :: else fi }
		fi;
#endif
		locked = false;
		if
		:: mine && home == w -> atomic { if :: number -> number = 0; live[w]-- :: else fi; GO_ON }
		:: mine && home != w ->
			if
#ifdef BREAK_ADOPT_ON_STACK /* adopt: hd__is_off_stack not asked */
			:: to = home; home = w;
#else
			:: !on_stack -> to = home; home = w; /* adopt */
#endif
#ifndef BREAK_ADOPT_KEEPS_NUMBER /* adopt: the number stays in the word */
				atomic { if :: number -> number = 0; n = 1 :: else fi }
				if
				:: n -> live[to]--; n = 0 /* hd__timers_orphan */
				:: else
				fi;
#endif
				atomic { if :: number -> number = 0; live[w]-- :: else fi; GO_ON }
			:: wake[home] = true /* it must stay: it is pinned, a request is on its way, or it is on its stack */
			fi
		:: else
		fi;
		atomic { to = 0; mine = false; lane[w] = false }
	/* a deadline comes, also by the watcher */
	:: atomic { !lane[w] && heap[w] -> lane[w] = true;
			if
			:: heap[w] & BIT(1) -> n = 1
			:: heap[w] & BIT(2) -> n = 2
			:: heap[w] & BIT(3) -> n = 3
			fi;
			heap[w] = heap[w] & ~BIT(n); live[w]--
		}
		if
		:: number != n -> live[w]++ /* hd__timers_take_due: not live */
		:: number == n ->
			atomic { /* hd__wait_expired: compare-and-swap */
#ifdef BREAK_IGNORE_NUMBER /* hd__wait_expired: the number not compared */
				if
				:: false
#else
				if
				:: number != n -> live[w]++ /* an orphan since */
#endif
				:: else -> number = 0; mine = !decided; decided = true
				fi
			}
			if
			:: mine -> atomic { !locked -> assert(waits == n); linked = false; GO_ON } /* withdraw */
			:: else
			fi
		fi;
		atomic { n = 0; mine = false; lane[w] = false }
	od
}

#define ACCOUNT(w) (live[w] == (state == WAITING && home == w && number -> 1 : 0))

proctype quiet()
{
	timeout;
	assert(state == RUNNING && waits == WAITS);
	assert(!wake[0] && !wake[1] && !heap[0] && !heap[1] && number == 0);
	assert(ACCOUNT(0) && ACCOUNT(1))
}

init
{
	atomic { run worker(0); run worker(1); run quiet() }
}
