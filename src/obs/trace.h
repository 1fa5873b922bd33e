/* obs/trace.h - the trace seam: what the runtime does, event by event, in rings that a tool reads from outside, or from a file.
 *
 * Each worker has a ring; plain threads and the watcher share one. A ring keeps the last `size` events. One thread at a time writes it: the thread
 * that is inside the worker's lane, or the holder of hd__trace.lock. Any program that may read the memory reads it meanwhile:
 *
 *   the writer   fence; the event, with its number; then, release, count = number + 1
 *   the reader   count; the events; count once more. An event is good if it has its own number and is not among those that the writer may have
 *                overwritten until the second look: number + size > count
 *
 * Off unless a tool has asked for it (hd__trace.wish), or HEDDLE_TRACE has. What is off costs nothing: the test is that of HD__RECORD among the
 * chores of a worker, which are tested anyhow.
 *
 * This header, too, is for other programs (rt/inside.h): the meaning of an event is a part of HD__INSIDE_VERSION. */
#ifndef OBS_TRACE_H
#define OBS_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kinds of events, and what they say: pid, `more`, and three bytes. */
enum hd__traced {
	HD__TRACED_NOTHING,
	HD__TRACED_STATE,   /* a process goes from a state (how >> 4) to another (how & 15); level: its priority, and
			       *   to RUNNING    why: HD__TRACED_HANDED
			       *   to READY      more: the process that woke or spawned it; 0: none, or not known. why, from WAITING: the outcome of its wait
			       *   to WAITING    why: enum hd_wait; more: the address of the queue, or the descriptor */
	HD__TRACED_RUNS,    /* when the trace began, the worker ran this process */
	HD__TRACED_IDLE,    /* the worker has nothing to run */
	HD__TRACED_AWAKE,   /* it slept, and was woken, or its time had come */
	HD__TRACED_WAKE,    /* more, a process or (0) a plain thread, wakes the process on another worker */
	HD__TRACED_SEND,    /* the process, or (0) a plain thread, sends the message `more` */
	HD__TRACED_RECEIVE, /* the process receives it */
	HD__TRACED_MOVE,    /* the process comes to this worker, from number `more` */
	HD__TRACED_PREEMPTED, /* the process loses its worker; why: HD__TRACED_QUANTUM if its quantum is over, else to a higher priority */
	HD__TRACED_FORCED, /* the process is about to, by a signal */
	HD__TRACED_NAME,   /* more: eight characters of its name, from number 8 * why on */
	HD__TRACED_ENTRY,  /* more: the function that it begins with */
	HD__TRACED_KINDS
};
#define HD__TRACED_HANDED 1 /* it was handed the worker */
#define HD__TRACED_QUANTUM 1

struct hd__event {
	uint32_t number; /* in its ring, from 0; the lowest 32 bits */
	uint8_t kind;	 /* enum hd__traced */
	uint8_t how, why, level;
	uint64_t when; /* ticks, or ns: see struct hd__trace_clock */
	int64_t pid;
	uint64_t more;
};
_Static_assert(sizeof(struct hd__event) == 32, "two events are a cache line");

struct hd__tape {
	uint64_t count __attribute__((aligned(64))); /* events ever recorded; release: see above */
	uint64_t size;				     /* a power of two; constant, as is */
	struct hd__event *events;
	uint64_t left; /* `when` of the last event, if that was the runner's leaving its worker; else 0: the writer's */
};

/* The same moment by the counter and by heddle's clock, twice: when the trace began, and lately. If the counter is not used, the two are equal. */
struct hd__trace_clock {
	uint64_t begin_ticks, begin_ns, last_ticks, last_ns;
};

/* What a tool writes into hd__trace.wish, in one word: a check of the rest, a number that is not 0 and that the tool draws, the logarithm of the size of a
 * ring, and for how many milliseconds; order 0: it has read all. A word of which only some bytes have arrived fails the check. */
#define HD__WISH(serial, order, ms) hd__wish((uint64_t)(serial) << 48 | (uint64_t)(order) << 40 | (uint64_t)(uint32_t)(ms))
#define HD__WISH_SERIAL(wish) ((unsigned)((wish) >> 48 & 255))
#define HD__WISH_ORDER(wish) ((unsigned)((wish) >> 40 & 255))
#define HD__WISH_MS(wish) ((uint32_t)(wish))
#define HD__TRACE_ORDER_MIN 6
#define HD__TRACE_ORDER_MAX 22

static inline uint64_t hd__wish(uint64_t wish)
{
	uint64_t check = 0x5a;

	wish &= UINT64_MAX >> 8;
	for (int i = 0; i < 7; i++)
		check = (check << 1 ^ check >> 7 ^ (wish >> 8 * i)) & 255;
	return wish | check << 56;
}

/* The runtime's trace: a part of struct hd__sched. */
struct hd__trace {
	uint64_t wish;	 /* a tool's; 0: none. It may come at any moment, and of it any bytes first */
	uint64_t obeyed; /* the last wish that was heard: the answer to the tool */
	struct hd__trace_clock
		clock; /* the last pair is renewed while it is on; begin_ns is stored last, release; 0: no trace */
	struct hd__tape
		*tapes; /* one for each worker that there may be, then that of the other threads; NULL: none (acq_rel) */
	uint64_t ntapes;
	bool on;	    /* events are recorded (acq_rel) */
	bool by_ticks;	    /* else by the runtime's clock */
	bool from_start;    /* HEDDLE_TRACE: until the runtime is over, and no wish is heard */
	unsigned char lock; /* of the last tape, and of what follows */
	unsigned char turn; /* lock: one thread at a time turns it on or off */
	int64_t until;	    /* on heddle's clock: it is turned off then, */
	int64_t forget;	    /* and the tapes are given back then at the latest */
	uint64_t size;	    /* of the reservation, bytes */
};

/* Makes the tapes for n writers, of 1 << order events each. False: no memory. */
bool hd__trace_make(struct hd__trace *trace, unsigned n, unsigned order);

/* Gives them back; no thread writes any more. */
void hd__trace_drop(struct hd__trace *trace);

/* By the one thread that may write the tape. The event's number is given here. It is stored word by word, each with release: a reader that sees one of these
 * words sees, too, that count has come so far, and knows that the event which stood there is gone. */
typedef uint64_t __attribute__((may_alias)) hd__word;
static inline void hd__tape_put(struct hd__tape *tape, struct hd__event event)
{
	uint64_t count = tape->count;
	hd__word *to = (hd__word *)&tape->events[count & (tape->size - 1)], *from = (hd__word *)&event;

	event.number = (uint32_t)count;
	for (size_t i = 0; i < sizeof event / sizeof *to; i++)
		__atomic_store_n(&to[i], from[i], __ATOMIC_RELEASE);
	__atomic_store_n(&tape->count, count + 1, __ATOMIC_RELEASE); /* pairs with the reader's two looks */
}
_Static_assert(sizeof(struct hd__event) % sizeof(hd__word) == 0, "an event is whole words");

#endif
