/* arch/tls.h - thread-local storage that belongs to a process and moves with it (hd_spawn.own_tls).
 *
 * A kernel thread uses one storage at a time: its own, or that of the process that it runs. Which one, its thread pointer says; everything that
 * compilers and the C library keep for a thread is found from there, at fixed distances. heddle's own thread-local variables too: they are about the
 * kernel thread, so a storage that comes into use is told which thread uses it. */
#ifndef ARCH_TLS_H
#define ARCH_TLS_H

#include <stddef.h>
#include <stdint.h>

/* A storage of a process's own. Made by os/tls.h. */
struct hd__tls {
	uintptr_t tp;	      /* the thread pointer while it is in use */
	struct hd__tls *next; /* while no process has it */
	uint32_t lent;	      /* a thread that is no worker uses it for the process (os/tls.h); any thread, by exchange */
};

/* From the storage that the calling thread uses to its own, in bytes; 0: it uses its own. */
extern _Thread_local ptrdiff_t hd__tls_away __attribute__((visibility("hidden")));

/* The calling thread uses this storage from now on; NULL: its own. The caller is not in a function that holds the address of a thread-local variable. */
void hd__tls_use(const struct hd__tls *tls);

/* The calling thread, the only one of a forked child, keeps the storage that it uses: that is its own from now on. */
void hd__tls_keep(void);

#endif
