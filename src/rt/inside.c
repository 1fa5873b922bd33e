/* rt/inside.c - heddle's structures described, for tools that read the memory of this program from outside.
 *
 * Owns:       hd__inside, the description, and the ELF note that leads to it.
 * Invariant:  where a field is, and its size, the compiler says: no number here can be out of date. `sched` is the runtime's from before its first process
 *             runs until after its last has ended.
 * Locking:    none. The thread that calls hd_run writes it, and no thread of this program reads it; a tool that reads at the wrong moment finds a
 *             table that it cannot make sense of, and looks again.
 *
 * Nothing else is kept up to date for such tools: they read what the runtime has anyhow, as hd__describe does (life/info.c). */
#include "rt/inside.h"

#include <stddef.h>
#include <stdio.h>

#include "port/port.h"
#include "rt/rt.h"
#include "sync/promise.h"
#include "when/when.h"

#include <heddle/barrier.h>
#include <heddle/event.h>
#include <heddle/group.h>
#include <heddle/monitor.h>
#include <heddle/once.h>
#include <heddle/rwlock.h>
#include <heddle/semaphore.h>
#include <heddle/waitgroup.h>

/* A block of the table: for its size. */
struct hd__block {
	struct hd_process process;
};

_Static_assert((int)HD_WAIT_QUIESCE < HD__INSIDE_WAITS, "there is room for every kind of wait");
_Static_assert((int)HD__INSIDE_FIELDS <= HD__INSIDE_FIELDS_MAX, "tools read so many fields");

_Static_assert(HD__GRANTED == 1 && HD__TIMED_OUT == 2 && HD__CANCELLED == 4, "tools/heddle/timeline.c knows how waits end by these");

#define IN(type, name) .object = name, .at = (uint32_t)offsetof(struct hd_##type, waiters)

__attribute__((used)) struct hd__inside hd__inside = {
	.magic = HD__INSIDE_MAGIC,
	.version = HD__INSIDE_VERSION,
	.size = sizeof hd__inside,
	.fields = HD__INSIDE_FIELDS,
	.library = HD__VERSION,
	.field = {
#define FIELD(name, type, member)                                                                                              \
	[HD__INSIDE_##name] = { (uint32_t)offsetof(type, member), (uint32_t)sizeof(((type *)0)->member) },
		HD__INSIDE_LIST(FIELD)
#undef FIELD
	},
	.wait = {
		[HD_WAIT_SEMAPHORE] = { IN(semaphore, "semaphore") },
		[HD_WAIT_MUTEX] = { IN(mutex, "mutex") },
		[HD_WAIT_CONDITION] = { IN(condition, "condition") },
		[HD_WAIT_REENTER] = { IN(mutex, "mutex") },
		[HD_WAIT_READ] = { IN(rwlock, "rwlock") },
		[HD_WAIT_WRITE] = { IN(rwlock, "rwlock") },
		[HD_WAIT_BARRIER] = { IN(barrier, "barrier") },
		[HD_WAIT_ONCE] = { IN(once, "once") },
		[HD_WAIT_EVENT] = { IN(event, "event") },
		[HD_WAIT_WAITGROUP] = { IN(waitgroup, "wait group") },
		[HD_WAIT_PROMISE] = { IN(promise, "promise") },
		[HD_WAIT_PUT] = { .object = "queue" }, /* its first member: sync/queue.c */
		[HD_WAIT_NEXT] = { .object = "queue" },
		[HD_WAIT_GROUP] = { IN(group, "group") },
	},
};

/* The note: PT_NOTE, in the first page of the file, as a rule. What it says is known to the linker: a note has no relocations. */
__asm__(".pushsection .note.heddle, \"a\", %note\n\t"
	".balign 4\n\t"
	".long 7, 16, 1\n\t" /* the sizes of name and contents; HD__INSIDE_NOTE */
	".asciz \"heddle\"\n\t"
	".balign 4\n\t"
	".long 1, 0\n\t" /* HD__INSIDE_VERSION */
	".8byte hd__inside - .\n\t"
	".popsection");
_Static_assert(HD__INSIDE_NOTE == 1 && HD__INSIDE_VERSION == 1 && sizeof HD__INSIDE_OWNER == 7 &&
		       sizeof(struct hd__inside_note) == 16,
	       "the note says so");

void hd__inside_open(struct hd__sched *sched)
{
	bool by_kernel = sched->doors.clock == &hd__os_clock;

	for (int i = 0; i <= HD_WAIT_QUIESCE; i++)
		snprintf(hd__inside.wait[i].call, sizeof hd__inside.wait[i].call, "%s", hd__wait_name((enum hd_wait)i));
	hd__inside.waits = HD_WAIT_QUIESCE + 1;
	hd__inside.self = (uintptr_t)&hd__inside;
	hd__inside.beginning = HD__BEGINNING;
	hd__inside.start = by_kernel ? hd__os_kernel_time(HD__BEGINNING) : INT64_MIN;
	st_rel(&hd__inside.sched, (uint64_t)(uintptr_t)sched);
}

void hd__inside_shut(void)
{
	st_rel(&hd__inside.sched, 0);
}
