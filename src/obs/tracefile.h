/* obs/tracefile.h - a file with what the tapes of a trace have, as rt/trace.c writes it and `heddle trace FILE` reads it.
 *
 *   struct hd__trace_head
 *   the struct hd__inside of the program: head.inside bytes (rt/inside.h)
 *   head.tapes times: struct hd__trace_part, and its events
 *   head.names times: struct hd__trace_name: the processes that lived
 *
 * It is of the machine that wrote it. This header is for other programs too. */
#ifndef OBS_TRACEFILE_H
#define OBS_TRACEFILE_H

#include "obs/trace.h"

#define HD__TRACE_MAGIC "heddle trace\n" /* and three zeroes */
#define HD__TRACE_FILE_VERSION 1

struct hd__trace_head {
	char magic[16];
	uint32_t version, inside;
	uint32_t tapes, names, workers, zero;
	int64_t program; /* its process id */
	struct hd__trace_clock clock;
};

struct hd__trace_part {
	uint64_t first, events; /* the number of the first event; how many there are */
};

struct hd__trace_name {
	int64_t pid;
	uint64_t entry;
	char name[32];
};

#endif
