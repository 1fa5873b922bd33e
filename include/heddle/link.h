/* heddle/link.h - hearing of the end of other processes, and ending together.
 *
 * Two processes that are linked end together: if one of them ends otherwise than by returning, the other one is killed, for the same reason.
 * A process that is spawned linked is its creator's child: when the creator is killed or fails, its end is not told before that of its
 * children. A process that watches another one receives a message when that one has ended. Ports can have names. */
#ifndef HEDDLE_LINK_H
#define HEDDLE_LINK_H

#include <heddle/base.h>
#include <heddle/port.h>
#include <heddle/process.h>

HD_BEGIN

/* Links the caller with pid, both ways. Links count: two calls are undone by two. A normal end (hd_exit, or the entry returns) of one of the two
 * ends the link, and nothing else. Returns 0; -ESRCH when there is no such process, or it has ended; -EINVAL when pid is the caller;
 * -ENOMEM; -ENOTSUP on a plain thread. */
HD_API HD_MUST_USE int hd_link(hd_pid pid);

/* Undoes one hd_link between the caller and pid, whichever of the two called it, or hd_spawn.link. Returns 0; -ENOENT when they are not linked; -ENOTSUP on a
 * plain thread. */
HD_API int hd_unlink(hd_pid pid);

/* The data of a death notice, whose tag is HD_TAG_ENDED and whose sender is the process that has ended. */
struct hd_ended {
	hd_pid pid;
	struct hd_end end; /* its kind is 0 when pid had ended, and was forgotten, before hd_watch */
};

/* A message is sent to `port` when pid has ended: after all that pid has sent there, and after the end of the children that it takes with it. It
 * arrives in a full port too. If pid has ended, or never existed, it is sent at once. Each call is one message. Returns 0; -ENOMEM;
 * -ESRCH when the owner of the port has ended; -EINVAL when the port is one for an answer; -ENXIO when no runtime runs. Any thread. */
HD_API HD_MUST_USE int hd_watch(hd_pid pid, hd_port *port);

/* Undoes one hd_watch of pid with this port, or hd_spawn.watch: the message will not come. Returns 0; -ENOENT when there is none: perhaps
 * the message is in the port already; -ENXIO when no runtime runs. Any thread. */
HD_API int hd_unwatch(hd_pid pid, hd_port *port);

/* Gives a port a name, until its owner ends or the name is taken back. hd_whereis answers the port of that name, with a reference that the
 * caller releases; NULL: there is none, or no runtime runs. Names have 1 to 255 bytes. Return 0;
 *
 *   -EEXIST         another port has that name
 *   -ENOENT         no port has it (hd_unregister)
 *   -ESRCH          the owner of the port has ended
 *   -EINVAL         the name is NULL or empty, or the port has no owner or is one for an answer
 *   -ENAMETOOLONG   the name is longer
 *   -ENOMEM, -ENXIO
 *
 * Any thread. */
HD_API HD_MUST_USE int hd_register(const char *name, hd_port *port);
HD_API int hd_unregister(const char *name);
HD_API HD_MUST_USE hd_port *hd_whereis(const char *name);

HD_END
#endif
