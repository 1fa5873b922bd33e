/* life/pin.c - staying on one kernel thread.
 *
 * Owns:      p->pins, while the process runs. Other workers read it when the process is ready or its wait is claimed: it does not
 *            run then.
 * Callers:   the process itself. */
#include <errno.h>

#include "life/life.h"

int hd_pin(void)
{
	struct hd_worker *w = hd__self();

	if (w == NULL)
		return -ENOTSUP;
	if (w->current->pins == UINT16_MAX)
		return -EINVAL;
	w->current->pins++;
	hd__learn(w); /* it may use thread-local variables now, as other pinned processes of this thread did */
	return 0;
}

int hd_unpin(void)
{
	struct hd_worker *w = hd__self();

	if (w == NULL)
		return -ENOTSUP;
	if (w->current->pins == 0)
		return -EINVAL;
	w->current->pins--;
	hd__publish(w);
	return 0;
}
