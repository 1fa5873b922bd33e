/* models/steal.pml - three busy workers: whoever is told of something better in a share takes that, or looks again.
 *
 * Models:     hd__share_steal, hd__share_put and hd__share_announce (sched/share.c), `choose` and hd__attend (sched/sched.c).
 * Scenario:   workers 0 and 2 run a process of level 2, worker 1 one of level 1; worker 0 has another of level 1 pinned. Whoever
 *             runs makes others of level 2 or 3 that may run anywhere, a few in all; one may end. Who was preempted is pinned.
 * Holds:      when nothing moves any more, no worker runs a process while a better one waits in a share.
 *
 * With two workers none of this can go wrong: it takes one who tells, one who is told, and one who takes what that one had. */

#ifndef MAKES
#define MAKES 3
#endif
#ifndef ENDS
#define ENDS 1
#endif

#define WORKERS 3
#define TRIES (WORKERS - 1) /* hd__share_steal */

/* A queue is a number: 1 for each process of level 1 that is in it, 8 for each of level 2, 64 for each of level 3. */
#define ONE(level) ((level) == 3 -> 64 : ((level) == 2 -> 8 : (level)))
#define LEVEL(queue) ((queue) >= 64 -> 3 : ((queue) >= 8 -> 2 : ((queue) > 0 -> 1 : 0))) /* of its best */
#define BEST LEVEL(share[w] + pinned[w])

byte share[WORKERS], pinned[WORKERS], current[WORKERS];
byte shared[WORKERS], running[WORKERS]; /* the board */
bool attention[WORKERS];		/* HD__STEAL */
byte makes = MAKES, ends = ENDS;

#define PUSH(v, queue) share[v] = share[v] + (queue); shared[v] = LEVEL(share[v])
#define TAKE(v, queue) share[v] = share[v] - (queue); shared[v] = LEVEL(share[v])

/* best_share, tell_those_below: one load of the board each. Of equals the first is taken, so the order matters. */
#define LOOK(v) atomic { if :: v != w && shared[v] > best -> best = shared[v]; from = v :: else fi }
#define TELL(v) atomic { if :: v != w && running[v] && running[v] < made -> attention[v] = true :: else fi }

proctype worker(byte w)
{
	byte level, best, from, tries, made;
	bool unannounced, due; /* due: HD__STEAL_DUE */

	goto compute;

choose:
	atomic {
		level = BEST;
		if
		:: level == 0 -> running[w] = 0; goto end_idle
		:: level && level > running[w] -> goto publish
		:: level && level < running[w] -> goto publish_less
		:: level && level == running[w] && LEVEL(pinned[w]) == level -> pinned[w] = pinned[w] - ONE(level)
		:: level && level == running[w] && LEVEL(pinned[w]) < level -> TAKE(w, ONE(level))
		fi;
		current[w] = level;
		goto dispatched
	}
publish: /* hd__set_level */
	running[w] = level;
	goto choose;
publish_less:
	running[w] = level;

steal: /* something above `level`, from the best share */
	best = level;
	LOOK(0) LOOK(1) LOOK(2)
	atomic {
		if
		:: best > level && LEVEL(share[from]) > level -> /* it runs at once */
			level = LEVEL(share[from]);
			TAKE(from, ONE(level));
			pinned[w] = pinned[w] + ONE(current[w]);
			current[w] = level
		:: best > level && LEVEL(share[from]) <= level && tries < TRIES - 1 -> /* somebody was faster */
			tries++; best = 0; from = 0;
			goto steal
		:: best > level && LEVEL(share[from]) <= level && tries == TRIES - 1 ->
#ifndef BREAK_GIVE_UP /* hd__share_steal: after the last try HD__STEAL_DUE is not set again, though there is something yet */
			due = true;
#endif
			goto nothing
		:: best <= level ->
#ifndef BREAK_RELY_ON_OWN /* hd__attend: HD__STEAL_DUE is done with because its own share has as good, which may be stolen yet */
			due = due || (current[w] && level > current[w]);
#endif
			goto nothing
		fi;
		best = 0; from = 0; tries = 0
	}
	running[w] = level; /* hd__give */

dispatched:
	if
	:: unannounced -> made = shared[w]; TELL(0) TELL(1) TELL(2) made = 0
	:: else
	fi;
	unannounced = false;
	goto compute;

nothing:
	atomic {
		best = 0; from = 0; tries = 0;
		if
		:: current[w] -> goto compute
		:: else -> goto choose
		fi
	}

compute:
end_computes:
	if
	/* makes one: hd__share_put */
	:: atomic { makes > 0 -> makes--;
			if
			:: made = 2
			:: made = 3
			fi;
			PUSH(w, ONE(made));
			if
			:: made > current[w] -> unannounced = true; made = 0; goto compute
			:: else
			fi
		}
		TELL(0) TELL(1) TELL(2)
		atomic { made = 0; goto compute }
	/* ends */
	:: atomic { ends > 0 -> ends--; current[w] = 0; goto choose }
	/* comes by a safe point: hd__attend. Between its look at its own share and its choice others may steal from that */
	:: atomic { attention[w] || due -> attention[w] = false; due = false; level = (BEST > current[w] -> BEST : current[w]); goto steal }
	:: atomic { BEST > current[w] -> pinned[w] = pinned[w] + ONE(current[w]); current[w] = 0; goto choose }
	fi;
end_idle:
	false
}

/* When nothing moves any more. */
active proctype quiet()
{
	byte v, w;

	atomic { makes = 0; ends = 0 } /* at any time: whoever runs now computes on for ever */
	timeout;
	d_step {
		for (w : 0 .. WORKERS - 1) {
			for (v : 0 .. WORKERS - 1) {
				assert(running[w] == 0 || LEVEL(share[v]) <= current[w])
			}
		}
	}
}

init
{
	atomic {
		current[0] = 2; current[1] = 1; current[2] = 2;
		running[0] = 2; running[1] = 1; running[2] = 2;
		pinned[0] = 1;
		run worker(0); run worker(1); run worker(2)
	}
}
