/* sim/runtime/tls.c - simulated threads have one kernel thread, and no storages. Takes the place of os/tls.c. */
#include <errno.h>

#include "os/thread.h"
#include "os/tls.h"

int hd__os_tls_new(struct hd__tls **tls)
{
	(void)tls;
	return -ENOTSUP;
}

void hd__os_tls_destroy(struct hd__tls *tls)
{
	(void)tls;
}

void hd__os_tls_drop(struct hd__tls *tls)
{
	(void)tls;
}

void hd__os_tls_borrow(struct hd__tls *tls)
{
	(void)tls;
}

void hd__os_tls_give_back(struct hd__tls *tls)
{
	(void)tls;
}

void hd__os_tls_forget(void)
{
}

void hd__os_thread_keep_storage(void)
{
}
