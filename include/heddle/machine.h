/* heddle/machine.h - machines: processes without a stack of their own.
 *
 * A machine is a process that runs in turns: heddle calls a function of it, which does some work, and answers what the machine wants next:
 * another turn, a message, or its end. Between two turns it is a control block of 256 bytes and nothing else, so a machine that waits costs a
 * sixteenth of a process that waits. It is what a virtual machine, an interpreter or a state machine is made of. In all other respects a
 * machine is a process: it has an id, a priority, ports, links, names; it is joined, watched, supervised, suspended, cancelled and terminated
 * like any other. */
#ifndef HEDDLE_MACHINE_H
#define HEDDLE_MACHINE_H

#include <heddle/base.h>
#include <heddle/port.h>
#include <heddle/process.h>

HD_BEGIN

/* What a machine wants when its turn is over. */
enum hd_want {
	HD_WANT_TURN = 0, /* another turn, when those have run that are ready and equal to it: it is at the tail of its level */
	HD_WANT_MESSAGE,  /* to wait for a message: see hd_want_message */
	HD_WANT_SWITCH, /* another turn, and that the owner of a port runs at once in its place, if it may: see hd_want_switch */
	HD_WANT_END	/* to end */
};

/* The answer of a turn: made by one of the four functions below. Zeroed memory is HD_WANT_TURN. */
struct hd_interrupt {
	enum hd_want want;
	int err;       /* HD_WANT_END: 0, or the error that it fails with */
	hd_port *port; /* HD_WANT_MESSAGE, HD_WANT_SWITCH */
	hd_time until; /* HD_WANT_MESSAGE */
	void *result;  /* HD_WANT_END */
};

/* Another turn. */
static inline HD_MUST_USE struct hd_interrupt hd_want_turn(void)
{
	struct hd_interrupt i = { HD_WANT_TURN, 0, 0, 0, 0 };
	return i;
}

/* To wait until a message arrives in `port` (NULL: in any port of the machine's), or until a time. A message that is there already counts,
 * unless hd_receive_tag or hd_receive_where, with the same `port`, has looked at it and left it there: so a turn that has received nothing, and asks to
 * wait, misses nothing. A machine without ports waits for the time alone. hd_machine_waited tells the next turn how the wait ended. */
static inline HD_MUST_USE struct hd_interrupt hd_want_message(hd_port *port, hd_time until)
{
	struct hd_interrupt i = { HD_WANT_MESSAGE, 0, 0, 0, 0 };
	i.port = port;
	i.until = until;
	return i;
}

/* Another turn; but first the owner of `port` runs, to which the machine has just sent a message, say: at once, if it waits for that message or is
 * ready on this worker, may run here, and nothing ready here has a higher priority (the rule of hd_call). */
static inline HD_MUST_USE struct hd_interrupt hd_want_switch(hd_port *port)
{
	struct hd_interrupt i = { HD_WANT_SWITCH, 0, 0, 0, 0 };
	i.port = port;
	return i;
}

/* To end: with a result for the process that joins it, or (err is not 0; its sign does not matter) as by hd_fail. */
static inline HD_MUST_USE struct hd_interrupt hd_want_end(void *result, int err)
{
	struct hd_interrupt i = { HD_WANT_END, 0, 0, 0, 0 };
	i.result = result;
	i.err = err;
	return i;
}

/* What a machine is. It outlives the machine. */
struct hd_machine_ops {
	/* A turn: does about `budget` steps of work, whatever a step is to this machine, and answers what the machine wants. It runs as a process,
	 * on a stack that heddle lends it for the turn, and may make any heddle call. A call that must wait keeps the stack until the turn is
	 * over; so does the machine until its end if, when a turn is over, it has locals, has a mutex with HD_INHERIT locked, or has another cancel
	 * state or type than a new process. */
	struct hd_interrupt (*interpret)(void *self, uint64_t budget);
	/* Called when the machine ends, however it does: in the machine itself, or, if it had no turn to end in, by hd_run when that
	 * ends. Or NULL. */
	void (*drop)(void *self);
	uint64_t budget; /* of each turn; 0: 1000 */
};

/* Makes a machine whose turns are ops->interpret(self, budget). As hd_spawn_with with how->machine; how->stack_size is that of the stack that
 * its turns are lent. Any thread. Unless it answers an id, `self` is still the caller's, and ops->drop is not called. */
HD_API HD_MUST_USE hd_pid hd_spawn_machine(const struct hd_spawn *how, const struct hd_machine_ops *ops, void *self);

/* How the wait before this turn ended: 0: a message has arrived, or there was no wait; -ETIMEDOUT; -ECANCELED: the machine was cancelled.
 * -ENOTSUP on a plain thread. A machine that is terminated has no more turns. */
HD_API int hd_machine_waited(void);

HD_END
#endif
