/* os/outside.h - the door to what happens to descriptors: sets of them, in which a thread sleeps. */
#ifndef OS_OUTSIDE_H
#define OS_OUTSIDE_H

#include <heddle/base.h>

/* What happened to a descriptor: `whose` is what it was added with. */
enum { HD__CAN_READ = 1, HD__CAN_WRITE = 2, HD__HUNG_UP = 4 /* an end, an error or urgent data: a short count says nothing */ };
struct hd__happening {
	uint64_t whose;
	uint32_t what;
};

/* A set of descriptors that one thread waits for, and a bell that ends its wait. */
struct hd__outside {
	int epoll, bell;
};
int hd__os_outside_init(struct hd__outside *o);
void hd__os_outside_fini(struct hd__outside *o);

/* From now on every change of fd's readiness, and what it is ready for now, happens; once each. -EEXIST: it is in the set. -EPERM: it
 * is always ready. */
int hd__os_outside_add(struct hd__outside *o, int fd, uint64_t whose);
void hd__os_outside_remove(struct hd__outside *o, int fd);

/* What has happened, at most n. Sleeps until there is something, the bell or `until`; may return 0 early. Any thread. */
int hd__os_outside_wait(struct hd__outside *o, hd_time until, struct hd__happening *happened, int n);

/* Any thread, any signal handler. */
void hd__os_outside_ring(struct hd__outside *o);

#endif
