/* identity.h - what is known of a Lua process outside it: where its messages go, its id, and what it died of. */
#ifndef IDENTITY_H
#define IDENTITY_H

#include <heddle.h>
#include <stdatomic.h>

/* Shared by the process itself, by the handles (handle.h) in other processes, and by letters that are on their way. */
struct identity {
	atomic_uint references;
	hd_port *port;		    /* set before the identity is shared */
	_Atomic hd_pid pid;	    /* written by its creator and by itself, the same number; 0: it has not been spawned */
	_Atomic(char *) last_words; /* written once, with release, by the process before it ends; NULL: it said nothing */
};

/* With one reference. It takes the reference to the port over. NULL: no memory, and the port is still the caller's. */
struct identity *identity_new(hd_port *port);
struct identity *identity_retain(struct identity *identity);
void identity_release(struct identity *identity); /* NULL: does nothing */

/* By the process itself: a copy of the text is kept. Without memory, nothing. */
void identity_last_words(struct identity *identity, const char *text);

#endif
