/* heddle/group.h - processes that begin and end together.
 *
 * A group is opened by the first spawn into it and closed by hd_group_wait, which returns when every member has ended. The first member
 * that fails cancels the rest. Nobody gets lost: if the process that opened it is cancelled or ends, or time is up, the members are
 * stopped, and waited for. Groups nest: a member may open its own, and a process several, which it closes in the opposite order. A process
 * that returns with a group open aborts the program. Zeroed memory is a group without members. */
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
	hd_pid owner;		  /* that opened it */
	struct hd_group *outer;	  /* that its owner opened before */
	struct hd_cleanup *below; /* what its owner had pushed before */
};

/* Spawns a member, as hd_spawn; hd_spawn_with and hd_spawn.group for everything else. The process that opened the group may, and any
 * member. Returns its id, and errors as hd_spawn_with; -ECANCELED when the group was cancelled, or a member has failed. A member is
 * detached. Process only (else -EPERM). */
HD_API hd_pid hd_group_spawn(struct hd_group *g, hd_entry entry, void *arg);

/* Waits until every member has ended; then the group is as new. Returns 0; the error of the first that failed; when `until` came, or
 * the caller was cancelled, before that: cancels the members, goes on waiting for them, and returns -ETIMEDOUT or -ECANCELED.
 * -EPERM when the caller did not open it, or on a plain thread. Cancellation point. */
HD_API int hd_group_wait(struct hd_group *g, hd_time until);

/* Cancels all members, and lets no more in. Returns 0; -EPERM when no runtime runs. Any thread, while the group is open. */
HD_API int hd_group_cancel(struct hd_group *g);

HD_END
#endif
