/* model/play.h - plays scripts on the runtime and on the model, in an OS process of their own, and compares. */
#ifndef MODEL_PLAY_H
#define MODEL_PLAY_H

#include <heddle/runtime.h>

#include "model/script.h"

/* Shared with that OS process, so that it is there to be looked at however that ended: the script that was being played, and
 * the steps so far. */
struct stage {
	struct script script;
	struct log expected, real;
	long difference; /* the first step that differs; -1: none so far */
	int code;	 /* what hd_run returned, if it did so too early */
};

/* Where scripts come from; false when there are no more. */
typedef bool script_source(struct script *s, void *context);

enum played {
	PLAYED_SAME,
	PLAYED_DIFFERENT,
	PLAYED_DIED,   /* by a signal: an assertion, a crash */
	PLAYED_FOREVER /* a script took longer than `milliseconds` */
};

struct stage *stage_new(void);
void stage_drop(struct stage *stage);

/* Plays all scripts of the source, one after the other in one runtime, up to the first that goes wrong. `quiet` hides what
 * the runtime has to say about it. */
enum played play(struct stage *stage, enum hd_preempted preempted, script_source *source, void *context, int milliseconds,
		 bool quiet);

#endif
