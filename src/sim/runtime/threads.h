/* sim/runtime/threads.h - the simulated kernel threads, for what takes the place of os/ (os.c) and of the C library (libc.c).
 *
 * A thread is known by its index, from 0 on; the current thread is the caller. Outside a run there is one thread, and no other is started. */
#ifndef SIM_RUNTIME_THREADS_H
#define SIM_RUNTIME_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#include <heddle/base.h>

#include "sim/runtime/costs.h"

/* Starts a thread. Returns 0, or EAGAIN: there are too many, or there is no memory for its stack. */
int hd__sim_thread_start(unsigned *index, bool detached, void *(*fn)(void *), void *arg);

/* Waits for its end; the index is free again. */
void hd__sim_thread_join(unsigned index, void **result);
void hd__sim_thread_detach(unsigned index);

unsigned hd__sim_thread_current(void);
int hd__sim_thread_count(void); /* that have not ended */
bool hd__sim_thread_sleeps(unsigned index);

/* How often the current thread has waited for locks: see os/thread.h. */
unsigned *hd__sim_thread_waits(void);

/* The current thread sleeps on a word (NULL: for time alone), until it is woken there, or the time has come; or, if it hears that, it is interrupted. */
void hd__sim_thread_sleep(const uint32_t *word, hd_time until);
void hd__sim_thread_hear(bool hears);
void hd__sim_thread_interrupt(unsigned index);

/* Wakes the thread that sleeps longest on a word. False: there is none. */
bool hd__sim_thread_wake(const uint32_t *word);

/* The current thread could go on, and gives its CPU away. */
void hd__sim_give_way(void);

/* Virtual time; read as a program reads a clock, it passes by that. */
hd_time hd__sim_now(void);
hd_time hd__sim_read_clock(void);

/* In a run by the clock: the current thread pays for a deed. */
bool hd__sim_is_by_clock(void);
void hd__sim_pay(enum hd__sim_deed deed);

/* Whether that, an HD__SIM_FAIL_*, happens now. */
bool hd__sim_fails(unsigned what);

/* All threads see what each of them has stored late (base/point.h). */
void hd__sim_publish_all(void);

#endif
