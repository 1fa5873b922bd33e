/* life/local.c - variables of which every process has its own.
 *
 * Owns:      struct hd__locals: pairs of a variable's address and this process's value. Processes have few of them, so they
 *            are searched in order; there are no keys to run out of and nothing to register.
 * Callers:   the process itself. */
#include <errno.h>

#include "life/life.h"
#include "os/memory.h"

#define ROUNDS 4 /* of destructors that set values again, as POSIX allows them */

struct hd__locals {
	unsigned count, capacity;
	struct {
		const struct hd_local *local;
		void *value;
	} of[];
};

void *hd_local_get(const struct hd_local *local)
{
	struct hd_worker *w = hd__self();
	struct hd__locals *locals = w != NULL ? w->current->inner->locals : NULL;

	for (unsigned i = 0; locals != NULL && i < locals->count; i++)
		if (locals->of[i].local == local)
			return locals->of[i].value;
	return NULL;
}

int hd_local_set(const struct hd_local *local, void *value)
{
	struct hd_worker *w = hd__self();

	if (w == NULL)
		return -ENOTSUP;
	struct hd_process *me = w->current;
	struct hd__locals *locals = me->inner->locals;
	for (unsigned i = 0; locals != NULL && i < locals->count; i++)
		if (locals->of[i].local == local) {
			locals->of[i].value = value;
			return 0;
		}
	if (locals == NULL || locals->count == locals->capacity) {
		unsigned capacity = locals == NULL ? 4 : locals->capacity * 2;
		locals = hd__os_realloc(locals, sizeof *locals + capacity * sizeof locals->of[0]);
		if (locals == NULL)
			return -ENOMEM;
		if (me->inner->locals == NULL)
			locals->count = 0;
		locals->capacity = capacity;
		me->inner->locals = locals;
	}
	locals->of[locals->count].local = local;
	locals->of[locals->count++].value = value;
	return 0;
}

void hd__locals_destroy(struct hd_process *me)
{
	bool again = true;

	for (int round = 0; again && round < ROUNDS; round++) {
		again = false;
		for (unsigned i = 0; i < me->inner->locals->count;
		     i++) { /* a destructor may add one: me->inner->locals may move */
			const struct hd_local *local = me->inner->locals->of[i].local;
			void *value = me->inner->locals->of[i].value;
			if (value == NULL || local->destroy == NULL)
				continue;
			me->inner->locals->of[i].value = NULL;
			local->destroy(value);
			again = true;
		}
	}
	hd__os_free(me->inner->locals);
	me->inner->locals = NULL;
}
