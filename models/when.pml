/* models/when.pml - behaviours: tickets that join the lines of their cowns in two phases, pass the cowns on, and leave.
 *
 * Models:     hd__line_join, hd__line_placed, hd__line_leave, admit, have, follower (when/line.c), hd__behaviour_got, hd__behaviour_join, leave_lines,
 *             merge_tickets (when/when.c).
 * Scenario:   one of those in init, by choice: up to four behaviours on up to three cowns, writers and readers, made by up to four threads at once.
 * Holds:      a writer is alone with its cown, and readers are with readers only; every behaviour runs, once; behaviours that have a cown in common, which one
 *             of them writes, run in the order of their calls, if one call was over when the other began; no ticket is touched when its behaviour is
 *             gone. A behaviour that waits for ever is a process that does not end.
 *
 * A statement, a d_step and an atomic block are one access each to what threads share, and after it some that can only let others go on and that others
 * do not test for before: a ticket placed, a behaviour told. A spin is a guard. The cown's last ticket is a writer like any other, and left out. */

#define BEHAVIOURS 4
#define COWNS 3
#define NONE 15
#define B(t) ((t) / 2) /* the behaviour of a ticket */

/* Of a behaviour; and of a ticket, two for each behaviour. */
byte tickets[BEHAVIOURS], awaits[BEHAVIOURS];
bool ready[BEHAVIOURS], over[BEHAVIOURS], gone[BEHAVIOURS];
byte use[8];	     /* the cown; constant */
bool reads[8];	     /* constant */
byte next[8] = NONE; /* ticket->link: the next ticket, and its bits */
bool placed[8], admitted[8], next_reads[8];

/* Of a cown. */
byte last[COWNS] = NONE, next_writer[COWNS] = NONE, readers[COWNS];

/* For the checks. */
byte writing[COWNS], reading[COWNS];
byte before[BEHAVIOURS] = NONE; /* the behaviour that the same caller has made before */

#define TOUCH(t) assert(!gone[B(t)])

/* hd__behaviour_got */
#define GOT(b, n)                                                \
	assert(!gone[b] && awaits[b] >= (n));                    \
	awaits[b] = awaits[b] - (n);                             \
	if                                                       \
	:: awaits[b] == 0 -> assert(!ready[b]); ready[b] = true \
	:: else                                                  \
	fi

#define TELL                                  \
	if                                    \
	:: told -> told = false               \
	:: else -> GOT(B(at), 1)              \
	fi
#define GO_ON                                                  \
	if                                                     \
	:: follows -> at = then                                \
	:: else -> follows = false; then = 0; at = 0; break   \
	fi

/* admit: ticket `at` of cown c, unless `told` its behaviour is told, and the readers that follow it. */
inline admit()
{
	do
	::
#ifdef BREAK_COUNT_LATE /* admit: a reader is told before it is counted */
		atomic { TOUCH(at); follows = next_reads[at]; then = next[at]; admitted[at] = true; TELL };
		atomic { readers[c] = readers[c] + 2; GO_ON }
#else
		readers[c] = readers[c] + 2;
#ifdef BREAK_ACTIVE_APART /* admit: the link is read, and HD__ACTIVE stored later */
		atomic { TOUCH(at); follows = next_reads[at]; then = next[at] };
		atomic { TOUCH(at); admitted[at] = true; TELL; GO_ON }
#else
		atomic { TOUCH(at); follows = next_reads[at]; then = next[at]; admitted[at] = true; TELL; GO_ON }
#endif
#endif
	od
}

#ifdef BREAK_NO_SPIN /* join: no spin until the ticket before it is placed */
#define MAY_GO(ahead) true
#else
#define MAY_GO(ahead) (placed[ahead])
#endif

/* hd__line_join: ticket t, the last of its call if `all`; `got` counts what it has at once. */
inline join(t, all)
{
	atomic {
		c = use[t]; ahead = last[c]; last[c] = t;
#ifdef BREAK_PLACED_EARLY /* join: placed before the ticket before it is */
		placed[t] = all;
#endif
		if
		:: ahead == NONE -> placed[t] = all
		:: else
		fi
	};
	if
	:: ahead == NONE && !reads[t] -> /* have */
		if
		:: atomic { readers[c] == 0 -> got++ }
		:: atomic { readers[c] != 0 ->
#ifndef BREAK_WRITER_LATE /* have: next_writer stored after the addition */
				next_writer[c] = t
#endif
			};
			atomic {
				if
				:: readers[c] == 0 -> got++ /* adds 1, finds 0, and stores 0 */
				:: else -> readers[c] = readers[c] + 1
				fi
			};
#ifdef BREAK_WRITER_LATE
			next_writer[c] = t
#endif
		fi
	:: atomic { ahead == NONE && reads[t] -> at = t; told = true; got++ }; admit()
	:: atomic { ahead != NONE && MAY_GO(ahead) -> TOUCH(ahead); placed[t] = all };
		atomic {
			TOUCH(ahead);
			next[ahead] = t; next_reads[ahead] = reads[t];
			joins = reads[t] && admitted[ahead] && reads[ahead];
			ahead = NONE
		};
		if
		:: atomic { joins -> joins = false; at = t; told = true; got++ }; admit()
		:: else
		fi
	fi
}

/* hd_when, for behaviours first and second (or none), one after the other. */
proctype caller(byte first, second)
{
	byte b = first, c, ahead, at, then, got;
	bool told, follows, joins;

	do
	:: atomic {
			got = 1;
#ifndef BREAK_DUPLICATES /* merge_tickets: not called */
			if
			:: tickets[b] == 2 && use[2 * b] == use[2 * b + 1] -> tickets[b] = 1; reads[2 * b] = reads[2 * b] && reads[2 * b + 1]
			:: else
			fi;
#endif
			awaits[b] = tickets[b] + 1
		}
		join(2 * b, tickets[b] == 1);
		if
		:: tickets[b] == 2 -> join(2 * b + 1, true)
		:: else
		fi;
		atomic {
			placed[2 * b] = true; /* hd__line_placed */
			GOT(b, got);
			got = 0; c = 0; ahead = 0;
			if
			:: b == first && second != NONE -> b = second; before[b] = first
			:: else -> break
			fi
		}
	od
}

/* hd__line_leave: ticket t. That it finds no ticket linked, and not the end of the line either, is one step: its CAS then changes nothing. */
inline leave(t)
{
	atomic {
		c = use[t];
		if
		:: next[t] != NONE -> then = next[t]; follows = next_reads[t]
		:: next[t] == NONE && last[c] == t -> last[c] = NONE; then = NONE
		fi; /* else spins: blocks */
		if
		:: !reads[t] && then != NONE && !follows -> GOT(B(then), 1)
		:: else
		fi
	};
	if
	:: atomic { !reads[t] && then != NONE && follows -> at = then }; admit()
	:: !reads[t] && (then == NONE || !follows)
	:: atomic { reads[t] ->
			if
			:: then != NONE && !follows -> next_writer[c] = then; announces = true
			:: else
			fi;
			assert(readers[c] >= 2);
			readers[c] = (announces -> readers[c] - 1 : readers[c] - 2);
			lets = readers[c] == 1
		};
		if
		:: lets ->
#ifdef BREAK_ZERO_LATE /* leave: the writer has the cown before `readers` is 0 */
			atomic { at = next_writer[c]; assert(at != NONE); GOT(B(at), 1) };
			readers[c] = 0
#else
			atomic { at = next_writer[c]; assert(at != NONE); readers[c] = 0; GOT(B(at), 1) }
#endif
		:: else
		fi
	fi;
	atomic { c = 0; then = 0; follows = false; announces = false; lets = false; at = 0 }
}

#define SAME(x, y) (use[x] == use[y] && !(reads[x] && reads[y]))
#define CONFLICT(i, j)                                                                                       \
	(SAME(2 * (i), 2 * (j)) || (tickets[i] == 2 && SAME(2 * (i) + 1, 2 * (j))) ||                       \
	 (tickets[j] == 2 && (SAME(2 * (i), 2 * (j) + 1) || (tickets[i] == 2 && SAME(2 * (i) + 1, 2 * (j) + 1)))))

/* The behaviour itself: its turn, and its end. */
proctype behaviour(byte me)
{
	byte c, at, then, i;
	bool told, follows, announces, lets;

	ready[me];
	d_step {
		if
		:: before[me] == NONE
		:: else -> assert(over[before[me]] || !CONFLICT(before[me], me))
		fi;
		for (i : 2 * me .. 2 * me + tickets[me] - 1) {
			if
			:: reads[i] -> reading[use[i]]++
			:: else -> writing[use[i]]++
			fi;
			assert(writing[use[i]] == 0 || (writing[use[i]] == 1 && reading[use[i]] == 0))
		}
		i = 0
	}
	d_step {
		for (i : 2 * me .. 2 * me + tickets[me] - 1) {
			if
			:: reads[i] -> reading[use[i]]--
			:: else -> writing[use[i]]--
			fi
		}
		over[me] = true; i = 0
	}
	leave(2 * me);
#ifdef BREAK_STOP_AFTER_FIRST /* leave_lines: returns after the first cown that no ticket waits for */
	if
	:: tickets[me] == 2 && last[use[2 * me]] != NONE -> leave(2 * me + 1)
	:: else
	fi;
#else
	if
	:: tickets[me] == 2 -> leave(2 * me + 1)
	:: else
	fi;
#endif
	gone[me] = true /* its memory is given back */
}

#define R(t, cown) use[t] = cown; reads[t] = true
#define W(t, cown) use[t] = cown
#define ONE(b, x) tickets[b] = 1; x; run behaviour(b)
#define TWO(b, x, y) tickets[b] = 2; x; y; run behaviour(b)

init
{
	atomic {
		if
		:: TWO(0, W(0, 0), W(1, 1)); ONE(1, W(2, 0)); TWO(2, W(4, 0), W(5, 2)); TWO(3, W(6, 1), W(7, 2));
			run caller(0, NONE); run caller(1, NONE); run caller(2, NONE); run caller(3, NONE)
		:: TWO(0, R(0, 0), R(1, 1)); TWO(1, R(2, 0), W(3, 1)); TWO(2, W(4, 0), R(5, 1));
			run caller(0, NONE); run caller(1, NONE); run caller(2, NONE)
		:: TWO(0, R(0, 0), W(1, 1)); TWO(1, R(2, 0), R(3, 2)); TWO(2, W(4, 1), W(5, 2));
			run caller(0, NONE); run caller(1, NONE); run caller(2, NONE)
		:: ONE(0, R(0, 0)); ONE(1, R(2, 0)); ONE(2, W(4, 0)); ONE(3, R(6, 0));
			run caller(0, NONE); run caller(1, NONE); run caller(2, NONE); run caller(3, NONE)
		:: ONE(0, W(0, 0)); TWO(1, R(2, 0), R(3, 1)); ONE(2, R(4, 0)); TWO(3, W(6, 0), W(7, 1));
			run caller(0, 1); run caller(2, 3)
		:: TWO(0, R(0, 0), W(1, 0)); TWO(1, W(2, 0), W(3, 1)); ONE(2, R(4, 0));
			run caller(0, 1); run caller(2, NONE)
		fi
	}
}
