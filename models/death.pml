/* models/death.pml - the order of death: a creator and its child, their notices, and a watch that comes late.
 *
 * Models:     hd__ties_end, kill_kin, wait_for_children, hd__ties_tell, part_from_creator, part (port/tie.c), hd_watch, tie_to; die,
 *             announce_end (life/end.c).
 * Scenario:   process 0 has spawned process 1, and that process 2, all linked, each watched by one port. One of them fails, at any time and
 *             perhaps while another does, or is killed by those with which it is linked. A thread watches each of them once more, at any time.
 * Holds:      all three end; each watch is told once; a creator's end is told after its child's; no tie is used after it is freed.
 *
 * A statement, a d_step and an atomic block are one access each to what threads share. The child of i is i + 1. */

#define N 3
#define LOCK(l) atomic { !l -> l = true }

bool ties;	    /* the lock of all ties */
bool news[N];	    /* the lock of each one's news */
bool mailbox[N];
bool dead[N];
bool doomed[N];
bool child[N] = 1;  /* the tie of i with i + 1 is there; of the last: none */
bool mourns[N];	    /* it waits for its child */
bool woken[N];
byte watches[N] = 1; /* ties of watches in its line */

/* For the check alone. */
byte told[N];	/* notices of its end in the port */
byte asked[N] = 1; /* watches of it, ever */
byte ended;

/* part of the tie of i with its child, under the lock of all ties. */
inline part(i)
{
	assert(child[i]);
	child[i] = false;
	LOCK(mailbox[i]);
	wake = mourns[i];
	mailbox[i] = false
}

proctype process(byte me)
{
	bool wake;
	byte n;

	/* it fails, or is killed */
	skip;
	/* hd__ties_end: kill_kin */
	LOCK(ties);
	if
	:: me > 0 && child[me - 1] -> ties = false; doomed[me - 1] = true; LOCK(ties);
#ifdef BREAK_PART_BEFORE_DEATH /* hd__ties_end: a child parts from its creator before it is dead */
		if
		:: child[me - 1] -> part(me - 1)
		:: else
		fi
#endif
	:: else
	fi;
#ifdef BREAK_PART_BEFORE_DEATH
	if
	:: wake -> woken[me - 1] = true
	:: else
	fi;
	wake = false;
#endif
	if
	:: me < N - 1 && child[me] -> ties = false; doomed[me + 1] = true; LOCK(ties)
	:: else
	fi;
	ties = false;
	/* wait_for_children */
	LOCK(ties);
	if
	:: me < N - 1 && child[me] ->
#ifdef BREAK_COUNT_BEFORE_LOCK /* wait_for_children: the ties are unlocked before the mailbox is locked */
		ties = false; LOCK(mailbox[me]); mourns[me] = true; mailbox[me] = false;
#else
		LOCK(mailbox[me]); mourns[me] = true; ties = false; mailbox[me] = false;
#endif
		woken[me]
	:: else -> ties = false
	fi;
	/* announce_end */
	LOCK(news[me]);
	dead[me] = true;
	news[me] = false;
	/* hd__ties_tell: first the watches, at last the tie with the creator */
#ifdef BREAK_TELL_AFTER_PARTING /* hd__ties_tell: its creator goes on before the notices are sent */
	goto parts;
tells:
#endif
	LOCK(ties);
	atomic { n = watches[me]; watches[me] = 0 };
	ties = false;
	do
	:: n > 0 -> n--;
		atomic { told[me]++; assert(me == 0 || told[me - 1] == 0) }
	:: else -> break
	od;
#ifdef BREAK_TELL_AFTER_PARTING
	goto over;
parts:
#endif
	LOCK(ties);
	if
	:: me > 0 && child[me - 1] -> part(me - 1)
	:: else
	fi;
	ties = false;
	if
	:: wake -> woken[me - 1] = true
	:: else
	fi;
	wake = false;
#ifdef BREAK_TELL_AFTER_PARTING
	goto tells;
over:
#endif
	ended++
}

/* hd_watch */
proctype watcher(byte whom)
{
#ifdef BREAK_ALIVE_BEFORE_LOCK /* tie_to: whether it lives is seen without the lock of its news */
	bool gone = dead[whom];
	LOCK(ties); LOCK(news[whom]);
#else
	bool gone;
	LOCK(ties); LOCK(news[whom]);
	gone = dead[whom];
#endif
	if
	:: !gone -> watches[whom]++; asked[whom]++
	:: else
	fi;
	news[whom] = false; ties = false;
	if
	:: gone -> atomic { asked[whom]++; told[whom]++ } /* at once */
	:: else
	fi;
	ended++
}

proctype quiet()
{
	byte i;

	timeout;
	assert(ended == N + 1);
	do
	:: i < N -> assert(told[i] == asked[i] && watches[i] == 0 && !child[i]); i++
	:: else -> break
	od
}

/* Those that are linked with one that ends, end; the first of them by itself. */
proctype fate(byte me)
{
	doomed[me] -> run process(me)
}

init
{
	atomic {
		child[N - 1] = 0;
		run fate(0); run fate(1); run fate(2);
		if :: run watcher(0) :: run watcher(1) :: run watcher(2) fi;
		run quiet();
		/* one fails, or two at once */
		if :: doomed[0] = true :: doomed[1] = true :: doomed[2] = true :: doomed[0] = true; doomed[2] = true fi
	}
}
