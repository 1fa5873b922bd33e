/* stop.h - what the threads of a program have in their registers: each is stopped for a moment. */
#ifndef STOP_H
#define STOP_H

#include "traces.h"

/* Stops thread `tid` of a program that runs, calls look(arg, its registers), and lets it go on. The kernel lets it go on, too, if the caller dies. Returns whether it was stopped;
 * if not, `why` says why. */
bool stop_thread(int64_t tid, void (*look)(void *arg, const struct registers *r), void *arg, char *why, size_t why_size);

#endif
