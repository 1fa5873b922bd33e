/* os/tls.h - making thread-local storages of a process's own, with what the C library keeps for a thread. */
#ifndef OS_TLS_H
#define OS_TLS_H

#include "arch/tls.h"

/* A storage as a new thread has it: every variable has its first value, errno is 0, the locale is the program's. Returns 0; -ENOMEM; -ENOTSUP where
 * there can be none, and the program has been told why. Any thread. */
int hd__os_tls_new(struct hd__tls **tls);

/* By the process that uses it, at its end: the destructors of its thread_local variables. They may wait. */
void hd__os_tls_destroy(struct hd__tls *tls);

/* No thread uses it any more. If it is lent, this is done when it is given back. Any thread; no system call. */
void hd__os_tls_drop(struct hd__tls *tls);

/* The calling thread, which is no worker and uses its own storage, uses this one while its process waits for that; and its own again. */
void hd__os_tls_borrow(struct hd__tls *tls);
void hd__os_tls_give_back(struct hd__tls *tls);

/* In a forked child. */
void hd__os_tls_forget(void);

#endif
