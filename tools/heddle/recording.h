/* recording.h - the events of a trace (obs/trace.h), as they were read from a program that runs, from a core file, or from a file that HEDDLE_TRACE has made. */
#ifndef RECORDING_H
#define RECORDING_H

#include <stdio.h>

#include "inspect.h"
#include "obs/trace.h"

/* What one thread at a time has written: a worker, or (the last one) all other threads. */
struct reel {
	struct hd__event *events; /* in the order of their numbers; of the kind HD__TRACED_NOTHING: some are missing here */
	size_t count, room;
	uint64_t next; /* the number of the next event to be read */
	uint64_t lost; /* events that were overwritten before they were read */
};

/* A process, and its name as far as it is known. */
struct actor {
	int64_t pid;
	uint64_t entry;
	char name[40];
};

struct recording {
	struct hd__inside inside;
	struct reel *reels;
	unsigned count;	  /* of reels */
	unsigned workers; /* that there are: the first reels */
	struct hd__trace_clock clock;
	struct actor *actors; /* a hash table: actor_of */
	size_t actor_count, actor_room;
	size_t events, events_max; /* in all reels */
	unsigned char *buffer;	   /* for reading */
};

#define EVENTS_MAX_DEFAULT 4000000

/* An empty one. */
void recording_init(struct recording *r, const struct hd__inside *inside);
void recording_drop(struct recording *r);

/* Where a runtime has its trace: reads that. False: it cannot be read. */
struct trace_place {
	uint64_t sched, tapes, obeyed;
	unsigned count;
	bool on, from_start;
	struct hd__trace_clock clock; /* begin_ns 0: there is no trace */
};
bool trace_find(struct memory *m, const struct copy *copy, struct trace_place *place);

/* Reads what has come since the last time. False: it cannot be read any more. */
bool recording_read(struct recording *r, struct memory *m, const struct trace_place *place);

/* Whether a file is one of HEDDLE_TRACE's; then it is read, or the caller dies. */
bool recording_open(struct recording *r, const char *path, int64_t *program);

/* The actor with this id, made if there is none. The pointer is good until the next call. */
struct actor *actor_of(struct recording *r, int64_t pid);

/* The names of the processes that live. */
void recording_add_names(struct recording *r, const struct census *c);

/* What the trace becomes (timeline.c). */
struct timeline_wish {
	unsigned processes; /* tracks, at most */
	pid_t program;	    /* in which functions are looked up; 0: none */
};
struct timeline_said {
	size_t slices, flows, instants, lost, tracks, without_track, half_flows;
	double seconds;
};
void timeline_write(struct recording *r, const struct timeline_wish *wish, FILE *to, struct timeline_said *said);

/* Calls fn for each time that a process was ready until it ran: its priority, and how long that took, ns. */
void timeline_latencies(struct recording *r, void (*fn)(unsigned priority, int64_t ns, void *arg), void *arg);

/* Records a program that runs, for so long (trace.c). Dies when it cannot be. */
void trace_record(struct recording *r, struct inspected *target, double seconds);

/* Makes a timeline of a file of HEDDLE_TRACE's, and says what is in it. */
void trace_convert(struct recording *r, const char *out);

int trace_main(int argc, char **argv);

#endif
