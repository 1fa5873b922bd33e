/* rt/inside.h - a description of heddle's structures, for tools that read the memory of a program from outside: `heddle ps`, or a debugger.
 *
 * A program that has heddle in it has one struct hd__inside, in memory that can be written, so that a core file has it too. An ELF note leads there:
 * owner "heddle", type HD__INSIDE_NOTE, and struct hd__inside_note as its contents. A note is found through the program headers, which are mapped: no
 * symbol is needed, no section and no file.
 *
 * A tool takes where a field is, and how long it is, from the description; what the field means is what this version of heddle means by it.
 * HD__INSIDE_VERSION changes when a field of the list is taken away or gets another meaning, or the bits of a control word do. Fields may be added at
 * the end of the list without that: a tool finds fewer of them than it knows, or more.
 *
 * This header is for other programs too: it needs no other header of heddle. */
#ifndef RT_INSIDE_H
#define RT_INSIDE_H

#include <stdint.h>

#define HD__INSIDE_VERSION 1
#define HD__INSIDE_NOTE 1
#define HD__INSIDE_OWNER "heddle"
#define HD__INSIDE_MAGIC "heddle inside\n" /* and two zeroes */
#define HD__INSIDE_WAITS 64		   /* kinds of waits, at most */
#define HD__INSIDE_FIELDS_MAX 256	   /* fields, at most */

/* What tools know of: a name for it here, the struct, the member. PROCESS and WAITER are whole structs: their size counts. */
#define HD__INSIDE_LIST(F)                                                                                                     \
	F(SCHED_NOW, struct hd__sched, now)                                                                                    \
	F(SCHED_THREAD, struct hd__sched, thread)                                                                              \
	F(SCHED_STOPPING, struct hd__sched, stopping)                                                                          \
	F(SCHED_NWORKERS, struct hd__sched, nworkers)                                                                          \
	F(SCHED_BLOCKS, struct hd__sched, table.blocks)                                                                        \
	F(SCHED_MADE, struct hd__sched, table.made)                                                                            \
	F(SCHED_WORKERS, struct hd__sched, workers[0])                                                                         \
	F(WORKER_CURRENT, struct hd_worker, current)                                                                           \
	F(WORKER_SWITCHES, struct hd_worker, stats.switches)                                                                   \
	F(WORKER_ATTENTION, struct hd_worker, attention)                                                                       \
	F(PROCESS, struct hd__block, process)                                                                                  \
	F(PROCESS_HOME, struct hd_process, home)                                                                               \
	F(PROCESS_STATE, struct hd_process, state)                                                                             \
	F(PROCESS_PRIORITY, struct hd_process, priority)                                                                       \
	F(PROCESS_CONTROL, struct hd_process, control)                                                                         \
	F(PROCESS_WAITER, struct hd_process, waiter)                                                                           \
	F(PROCESS_WAIT, struct hd_process, wait)                                                                               \
	F(PROCESS_SINCE, struct hd_process, since)                                                                             \
	F(PROCESS_CPU_TIME, struct hd_process, cpu_time)                                                                       \
	F(PROCESS_SWITCHES, struct hd_process, switches)                                                                       \
	F(PROCESS_PINS, struct hd_process, pins)                                                                               \
	F(PROCESS_WHY, struct hd_process, why)                                                                                 \
	F(PROCESS_NATURE, struct hd_process, nature)                                                                           \
	F(PROCESS_STACK, struct hd_process, stack)                                                                             \
	F(PROCESS_STACK_CLASS, struct hd_process, stack_class)                                                                 \
	F(PROCESS_ENTRY, struct hd_process, entry)                                                                             \
	F(PROCESS_VALUE, struct hd_process, value)                                                                             \
	F(PROCESS_BOND, struct hd_process, bond)                                                                               \
	F(PROCESS_NAME, struct hd_process, name)                                                                               \
	F(WAITER, struct hd__receiver, waiter)                                                                                 \
	F(WAITER_PROCESS, struct hd_waiter, process)                                                                           \
	F(WAITER_QUEUE, struct hd_waiter, queue)                                                                               \
	F(WAITER_WHY, struct hd_waiter, why)                                                                                   \
	F(WAITER_OPS, struct hd_waiter, ops)                                                                                   \
	F(WAITER_OWNER, struct hd_waiter, owner)                                                                               \
	F(WAITER_NUMBER, struct hd_waiter, number)                                                                             \
	F(WAITER_PORT, struct hd__receiver, port)                                                                              \
	F(BEHAVIOUR_DISTINCT, struct hd__behaviour, distinct)                                                                  \
	F(BEHAVIOUR_FN, struct hd__behaviour, fn)                                                                              \
	F(BEHAVIOUR_TICKETS, struct hd__behaviour, tickets[0])                                                                 \
	F(TICKET_USE, struct hd__ticket, use)                                                                                  \
	F(COWN_HOLDER, struct hd_cown, holder)                                                                                 \
	F(PROCESS_SP, struct hd_process, context.sp)                                                                           \
	F(PROCESS_FP, struct hd_process, context.bp)                                                                           \
	F(PROCESS_PC, struct hd_process, context.ip)                                                                           \
	F(TRACE_WISH, struct hd__sched, trace.wish)                                                                            \
	F(TRACE_OBEYED, struct hd__sched, trace.obeyed)                                                                        \
	F(TRACE_CLOCK, struct hd__sched, trace.clock)                                                                          \
	F(TRACE_TAPES, struct hd__sched, trace.tapes)                                                                          \
	F(TRACE_NTAPES, struct hd__sched, trace.ntapes)                                                                        \
	F(TRACE_ON, struct hd__sched, trace.on)                                                                                \
	F(TRACE_FROM_START, struct hd__sched, trace.from_start)                                                                \
	F(WORKER_BEGUN, struct hd_worker, begun)                                                                               \
	F(WORKER_IDLE, struct hd_worker, idle)                                                                                 \
	F(WORKER_PRIORITY, struct hd_worker, running_priority)                                                                 \
	F(WORKER_SPAWNED, struct hd_worker, stats.spawned)                                                                     \
	F(WORKER_ENDED, struct hd_worker, stats.ended)                                                                         \
	F(WORKER_HANDOFFS, struct hd_worker, stats.handoffs)                                                                   \
	F(WORKER_PREEMPTIONS, struct hd_worker, stats.preemptions)                                                             \
	F(WORKER_FORCED, struct hd_worker, stats.forced)                                                                       \
	F(WORKER_QUANTA, struct hd_worker, stats.expired_quanta)                                                               \
	F(WORKER_REMOTE_WAKES, struct hd_worker, stats.remote_wakes)                                                           \
	F(WORKER_TIMEOUTS, struct hd_worker, stats.timeouts)                                                                   \
	F(WORKER_IDLES, struct hd_worker, stats.idles)                                                                         \
	F(WORKER_WOKEN, struct hd_worker, stats.woken)                                                                         \
	F(WORKER_STEALS, struct hd_worker, stats.steals)                                                                       \
	F(WORKER_STOLEN, struct hd_worker, stats.stolen)                                                                       \
	F(WORKER_TIMERS, struct hd_worker, timers.count)                                                                       \
	F(WORKER_LETTERS, struct hd_worker, letters.live)                                                                      \
	F(WORKER_THREAD, struct hd_worker, thread.id)

enum {
#define HD__INSIDE_NAME(name, type, member) HD__INSIDE_##name,
	HD__INSIDE_LIST(HD__INSIDE_NAME)
#undef HD__INSIDE_NAME
		HD__INSIDE_FIELDS
};

struct hd__inside_field {
	uint32_t at, size; /* bytes; of an array of structs, its first element */
};

/* A kind of wait, by its number in enum hd_wait. */
struct hd__inside_wait {
	char call[44];	 /* "hd_mutex_lock" */
	char object[16]; /* what its waiters wait in: "mutex"; "" when it is nothing that has an address */
	uint32_t at;	 /* where the object has the queue that its waiters are in */
};

struct hd__inside {
	char magic[16];
	uint32_t version;
	uint32_t size;		/* of all of it */
	uint32_t fields, waits; /* how many there are, of each of the two below */
	char library[16];	/* heddle's version: "0.1.0" */
	uint64_t self;		/* its address: what has another one is a copy */
	uint64_t sched;		/* the struct hd__sched of the runtime that runs; 0: none does */
	int64_t start; /* the kernel's monotonic clock, when heddle's was at `beginning`; INT64_MIN: it runs by another clock */
	int64_t beginning;
	struct hd__inside_field field[HD__INSIDE_FIELDS];
	struct hd__inside_wait wait[HD__INSIDE_WAITS];
};

/* Of the program that has heddle in it; not for tools. */
extern struct hd__inside hd__inside __attribute__((visibility("hidden")));

struct hd__inside_note {
	uint32_t version;
	uint32_t zero;
	int64_t offset; /* of the struct hd__inside, from the address of this number */
};

#endif
