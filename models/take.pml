/* models/take.pml - an owner that takes many letters out of its mailbox at once, and receives them one by one.
 *
 * Models:     take_rest, receive_taken, finish (port/receive.c), hd__untake, hd__letter_left (port/mailbox.c), hd__hurry (port/port.h), end_port (port/port.c).
 * Scenario:   one port without limits; a sender of three letters, one of an urgent letter; both give up their references then. An owner
 *             that takes what is behind the first letter if there are two or more, and has received all when it has looked often enough.
 * Holds:      plain letters are received in order, each once. An urgent letter that had arrived before hd_receive began is received before any plain one. The port
 *             is retired once, when it has neither references nor letters.
 *
 * A statement, a d_step and an atomic block are one access each to what threads share. */

#define PLAIN 3
#define URGENT PLAIN
#define LOCK atomic { !lock -> lock = true }

chan line = [PLAIN + 1] of { byte }; /* what has arrived */
chan taken = [PLAIN + 1] of { byte }; /* what the owner has taken */
bool urgent, sent;		      /* the urgent letter has arrived, and was not received; its sender has gone on */
byte length, unsettled;		      /* of the port; more->received */
bool hurry, lock, freed, retired;
byte refs = 2;

inline release_port()
{
	atomic { refs--; last = refs == 0 };
	if
	:: last -> LOCK;
		if
		:: length > 0 -> freed = true
		:: else -> assert(!retired); retired = true
		fi;
		lock = false
	:: else
	fi
}

proctype sends_plain()
{
	byte i;
	bool last;

	do
	:: i < PLAIN -> LOCK; line!i; length++; lock = false; i++
	:: else -> break
	od;
	release_port()
}

proctype sends_urgent()
{
	bool last;

	LOCK;
	urgent = true; length++;
#ifndef BREAK_NO_HURRY /* hd__hurry: the owner goes on with what it has taken */
	hurry = true;
#endif
	lock = false;
	sent = true;
	release_port()
}

inline untake()
{
	if
	:: nempty(taken) ->
#ifndef BREAK_UNTAKE_BEHIND /* hd__untake: behind what has arrived since */
		do
		:: nempty(line) -> line?x; taken!x
		:: empty(line) -> break
		od;
#endif
		do
		:: nempty(taken) -> taken?x; line!x
		:: empty(taken) -> break
		od;
#ifndef BREAK_NEVER_SETTLED /* hd__untake: the port's length still counts what was received */
		length = length - unsettled; unsettled = 0
#endif
	:: empty(taken)
	fi
}

proctype owner()
{
	byte x, next, got;
	bool early;
	byte y;

	do
	:: got < PLAIN + 1 ->
		early = sent && urgent; /* hd_receive begins */
		if
		:: empty(taken) -> goto look
		:: nempty(taken) ->
#ifdef BREAK_LAST_WITHOUT_LOCK /* receive_taken: the last one, too */
			if
			:: hurry -> goto back
			:: !hurry
			fi;
#else
			if
			:: len(taken) == 1 || hurry -> goto back
			:: else
			fi;
#endif
			assert(!early);
			taken?x; unsettled++;
			assert(x == next); next++; got++;
			goto received
		fi;
back:		LOCK; untake(); lock = false;
look:		LOCK;
		if
		:: urgent -> urgent = false; length--; got++; x = URGENT
		:: !urgent && nempty(line) -> assert(!early);
			if
			:: len(line) >= 2 && !freed -> /* take_rest */
				line?x;
				do
				:: nempty(line) -> line?y; taken!y
				:: empty(line) -> break
				od;
				hurry = false
			:: else -> line?x
			fi;
			length--;
			assert(x == next); next++; got++
		:: !urgent && empty(line) -> lock = false; (urgent || nempty(line)); goto look /* it waits */
		fi;
		if
		:: freed && length == 0 -> assert(!retired); retired = true /* hd__letter_left */
		:: else
		fi;
		lock = false;
received:	skip
	:: else -> break
	od
}

proctype quiet()
{
	timeout;
	assert(retired && empty(line) && empty(taken) && !urgent && length == 0)
}

init
{
	atomic { run owner(); run sends_plain(); run sends_urgent(); run quiet() }
}
