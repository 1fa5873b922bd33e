/* heddle/group.h - processes that begin and end together.
 *
 * The first spawn into a group opens it; the caller is its owner. hd_group_wait closes it, and returns when every member has
 * ended. The first member that fails cancels the rest. No member is left behind: if the owner is cancelled or ends, or its time
 * is up, the members are told to stop, and the owner waits for them. Groups nest: a member may open its own, and a process
 * several, which it closes in the opposite order. A process that returns with a group open aborts the program. Zeroed memory is
 * a group without members. */
#ifndef HEDDLE_GROUP_H
#define HEDDLE_GROUP_H

#include <heddle/base.h>
#include <heddle/cancel.h>
#include <heddle/process.h>

HD_BEGIN

struct hd__member;

/* All of it is private. It lives until hd_group_wait has returned. */
struct hd_group {
	struct hd_waitq waiters;
	struct hd__member *members, *cancelled_members;
	size_t count; /* of members that have not ended */
	int err;      /* of the first that failed */
	bool cancelled, doomed;
	hd_pid owner;		  /* the process that opened it */
	struct hd_group *outer;	  /* the group that its owner opened before */
	struct hd_cleanup *below; /* the cleanup that its owner had pushed last then */
};

/* Spawns a member, as hd_spawn; hd_spawn_with and hd_spawn.group for everything else. For the owner and the members of the
 * group. Returns its id, and errors as hd_spawn_with; -ECANCELED when the group was cancelled, or a member has failed. A member
 * is detached. Process only (else -ENOTSUP). */
HD_API HD_MUST_USE hd_pid hd_group_spawn(struct hd_group *g, hd_entry entry, void *arg);

/* Waits until every member has ended; then the group is as new. Returns 0; the error of the first member that failed; when
 * `until` came, or the caller was cancelled, before that: cancels the members, goes on waiting for them, and returns -ETIMEDOUT
 * or -ECANCELED. -EPERM when the caller is not its owner; -ENOTSUP on a plain thread. Cancellation point. */
HD_API HD_MUST_USE int hd_group_wait(struct hd_group *g, hd_time until);

/* Cancels all members, and refuses new ones. Returns 0; -ENXIO when no runtime runs. Any thread, while the group is open. */
HD_API int hd_group_cancel(struct hd_group *g);

HD_END
#endif
