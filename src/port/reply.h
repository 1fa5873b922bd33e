/* port/reply.h - the port to which the answer to a call goes; for call.c, which says what becomes of a call, and direct.c. */
#ifndef PORT_REPLY_H
#define PORT_REPLY_H

#include "port/port.h"

enum hd__call_state { HD__IDLE, HD__ASKED, HD__ANSWERED, HD__BROKEN, HD__ABANDONED };

struct hd__reply {
	struct hd__port_head head; /* one reference is the caller's own */
	uint8_t state;		   /* enum hd__call_state, of the call */
	bool waits;		   /* the caller is in `caller`, or has been until its wait was decided */
	bool stands;		 /* its p->arrival says which process will answer; else it will say so when it has been ready */
	hd_pid to;		 /* that process; 0: unknown */
	struct hd_waitq caller;	 /* where it waits */
	struct hd__mailbox *box; /* its mailbox */
	struct hd_process *process; /* it itself, */
	hd_pid pid;		    /* and its id */
	struct hd_message *answer;  /* where the answer goes */
	struct hd__letter *early;   /* the answer that came before its caller waited, and that the caller holds then; or NULL */
};

/* For the record of a caller in hd__reply.caller. */
extern const struct hd__wait_ops hd__call_ops;

/* As hd_call, hd_call_move, hd_reply and hd_reply_move, wherever the two processes are. `what` carries nothing. */
int hd__call_slowly(hd_port *port, const struct hd_sending *what, struct hd_message *answer, hd_time until);
int hd__reply_slowly(struct hd_message *m, const struct hd_sending *what);

#endif
