/* models/port.pml - the lifetime of a port and its mailbox: references, letters, the owner's end.
 *
 * Models:     hd_port_release, end_port (port/port.c), deliver, hd__take_letter, hd__free_gone, hd__mailbox_close, release_ports,
 *             hd__mailbox_release (port/mailbox.c).
 * Scenario:   a port with three references: its owner's, and those of two processes, which send a letter or two and give their
 *             reference up. The owner receives, may give its own up, and ends.
 * Holds:      port and mailbox are freed once, and not touched after that; each letter is received or dropped, or its sender's again.
 *
 * A statement, a d_step and an atomic block are one access each to what threads share. */

#define LETTERS 2
#define LOCK atomic { assert(!box_freed); !lock -> lock = true }
#define UNLOCK atomic { assert(!box_freed); lock = false }

byte refs = 3;	    /* of the port */
byte box_refs = 2;  /* of the mailbox: the port, and its owner */
bool lock;	    /* the mailbox's */
bool listed = true; /* the port is in the mailbox's list */
bool owners = true; /* the owner's reference is heddle's to release at its end */
bool freed;	    /* no references, but letters */
bool closed;
byte length;
bool port_freed, box_freed;

/* For the check alone. */
byte sent, got, ended;

/* hd__mailbox_release, under the lock. */
inline release_box()
{
	atomic { box_refs--; last = box_refs == 0 };
	UNLOCK;
	if
	:: last -> atomic { assert(!box_freed && !listed && length == 0); box_freed = true }
	:: else
	fi;
	last = false
}

#define FREE_PORT atomic { assert(!port_freed && !listed); port_freed = true }

/* hd__port_release: a reference to the port less. */
inline release()
{
	atomic { assert(refs > 0 && !port_freed); refs--; last = refs == 0 };
	if
	:: last -> last = false; /* end_port */
#ifdef BREAK_LOOK_BEFORE_LOCK /* end_port: the length is read without the lock */
		many = length > 0;
		LOCK;
#else
		LOCK;
		many = length > 0;
#endif
		if
#ifndef BREAK_FREE_WITH_LETTERS /* end_port: letters in a port that is freed */
		:: many -> freed = true; UNLOCK
		:: !many ->
#else
		:: true ->
#endif
			assert(listed); listed = false;
			release_box();
			FREE_PORT
		fi;
		many = false
	:: else
	fi
}

proctype sender()
{
	bool last, many;
	byte i;

	do
	:: i < LETTERS -> i++;
		LOCK; /* deliver */
		assert(!port_freed);
		if
		:: !closed -> length++; sent++
		:: else /* -ESRCH */
		fi;
		UNLOCK
	:: break
	od;
	release();
	ended++
}

proctype owner()
{
	bool last, many, gone;

	do
	:: !closed && length > 0 -> /* hd_receive, hd__take_letter */
		LOCK;
		if
		:: length > 0 ->
			assert(!port_freed && listed);
			length--; got++;
			if
			:: freed && length == 0 -> listed = false; gone = true
			:: else
			fi
		:: else
		fi;
		UNLOCK;
		if
		:: gone -> FREE_PORT; LOCK; release_box(); gone = false /* hd__free_gone */
		:: else
		fi
	:: owners -> /* hd_port_release by the owner */
#ifndef BREAK_KEEP_OWNERS /* hd_port_release: its end releases the same reference again */
		owners = false;
#endif
		release();
		if :: true -> goto ends :: true fi
	:: true -> break
	od;
ends:
	LOCK; /* hd__mailbox_close */
	closed = true;
	got = got + length; length = 0;
	UNLOCK;
	LOCK; /* release_ports */
	if
	:: listed && owners -> owners = false; UNLOCK; release(); LOCK
	:: else
	fi;
	if
#ifndef BREAK_LEAVE_FREED /* release_ports: ports without references are left */
	:: listed && freed -> listed = false; UNLOCK; FREE_PORT; LOCK; release_box(); LOCK
#endif
	:: else
	fi;
	release_box();
	ended++
}

proctype quiet()
{
	timeout;
	assert(ended == 3 && port_freed && box_freed && !lock);
	assert(sent == got)
}

init
{
	atomic { run owner(); run sender(); run sender(); run quiet() }
}
