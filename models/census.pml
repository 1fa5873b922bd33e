/* models/census.pml - births, ends and the hold: when the runtime is over.
 *
 * Models:     hd__nobody_counts (sched/worker.c), hd__stop_if_over (rt/stop.c), the counting in life/spawn.c and life/end.c,
 *             hd_hold_open.
 * Scenario:   two workers. A process runs on worker 0; a process spawns others, a few in all, moves to the other worker, holds the
 *             runtime open, and ends. A plain thread, for which the runtime is held open, spawns a process and lets go. An asker,
 *             a worker that idles or the watcher, reads one counter at a time.
 * Holds:      an asker that says that it is over is right: at that moment no process lived and nothing held the runtime open. When
 *             nothing moves any more and nothing lives, an asker says so.
 *
 * A statement and an atomic block are one access each to what threads share. */

#ifndef SPAWNS
#define SPAWNS 2
#endif
#ifndef ASKS
#define ASKS 1 /* how often it asks before all is quiet */
#endif

#define WORKERS 2

byte births[WORKERS], ends[WORKERS];
byte thread_births;
byte hold = 1; /* the plain thread's */
byte spawns = SPAWNS, holds = 1;

/* For the check alone. */
byte living;

proctype process(byte at)
{
	do
	/* spawns: it counts before it can end */
	:: atomic { spawns > 0 -> spawns--; living++ }
#ifdef BREAK_PUBLISH_BEFORE_BIRTH /* spawn: the process published before it is counted */
		run process(at);
		births[at]++
#else
		births[at]++;
		run process(at)
#endif
	/* moves: a thief takes it, inside the lane */
	:: at = 1 - at
	/* asks that the runtime stay, and ends: a plain thread will let go */
	:: atomic { holds > 0 -> holds--; hold++; run letter_go(); break }
	:: break
	od;
	atomic { living--; ends[at]++ }
}

/* A plain thread that lets go of what a process has asked for. */
proctype letter_go()
{
	hold--
}

/* A plain thread for which the runtime stays: spawns, and lets go. */
proctype thread()
{
	atomic { living++; thread_births++ }
	run process(1);
	hold--
}

/* hd__stop_if_over. */
proctype asker()
{
	byte sum, n;
	bool held;

	do
	:: n < ASKS ->
		sum = 0; held = false;
#ifdef BREAK_BIRTHS_FIRST /* hd__nobody_counts: births read before ends */
		sum = sum + births[0];
		sum = sum + births[1];
		sum = sum + thread_births;
		held = hold > 0;
		sum = sum - ends[0];
		sum = sum - ends[1];
#else
#ifdef BREAK_HOLD_FIRST /* hd__stop_if_over: hold read before ends: the last process asks for it in between, and ends */
		held = hold > 0;
#endif
		sum = sum - ends[0];
		sum = sum - ends[1];
#if !defined(BREAK_HOLD_LAST) && !defined(BREAK_HOLD_FIRST) /* hd__stop_if_over: hold read after births: a plain thread spawns and lets go in between */
		held = hold > 0;
#endif
		sum = sum + births[0];
		sum = sum + births[1];
		sum = sum + thread_births;
#ifdef BREAK_HOLD_LAST /* hd__stop_if_over: hold read after births: a plain thread spawns and lets go in between */
		held = hold > 0;
#endif
#endif
		if
		:: sum == 0 && !held -> assert(living == 0 && hold == 0); break
		:: else -> n++
		fi
	:: n == ASKS -> break
	od
}

/* When nothing moves any more. An asker that comes now says that it is over. */
proctype quiet()
{
	timeout;
	assert(living == 0 && hold == 0);
	assert(births[0] + births[1] + thread_births == ends[0] + ends[1])
}

init
{
	atomic { living = 1; births[0] = 1; run process(0); run thread(); run asker(); run quiet() }
}
