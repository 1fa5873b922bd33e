/* posix/key.c - keys: values of which every thread has its own, and which are destroyed at its end.
 *
 * Owns:       the keys; each thread's values, an array that it makes when it first sets one.
 * Invariant:  a value is of its key only if the two have the same number: a key that was deleted and made again has another.
 * Locking:    one lock, for making and deleting; a thread reads a key's number and destructor without.
 * Callers:    any thread that heddle has started, and the first; on others there are no values. */
#include "posix/posix.h"

#include <limits.h>

#include "base/atomic.h"
#include "os/lock.h"
#include "os/memory.h"

#define KEYS PTHREAD_KEYS_MAX

struct hd__key_value {
	uint64_t of; /* the key's number */
	void *value;
};

static unsigned char guard;
static struct {
	uint64_t number; /* odd while there is the key; release */
	void (*destroy)(void *);
} keys[KEYS];
static _Thread_local struct hd__key_value *plain; /* of a thread that heddle has not started; they are not destroyed */

int hd_pthread_key_create(pthread_key_t *key, void (*destroy)(void *))
{
	int err = EAGAIN;

	hd__lock(&guard);
	for (unsigned i = 0; i < KEYS && err != 0; i++)
		if (keys[i].number % 2 == 0) {
			st_rlx(&keys[i].destroy, destroy);
			st_rel(&keys[i].number, keys[i].number + 1);
			*key = i;
			err = 0;
		}
	hd__unlock(&guard);
	return err;
}

int hd_pthread_key_delete(pthread_key_t key)
{
	int err = EINVAL;

	hd__lock(&guard);
	if (key < KEYS && keys[key].number % 2 == 1) {
		st_rel(&keys[key].number, keys[key].number + 1);
		err = 0;
	}
	hd__unlock(&guard);
	return err;
}

static struct hd__key_value **values(void)
{
	struct hd__thread_face *me = hd__face();

	return me != NULL ? &me->values : &plain;
}

void *hd_pthread_getspecific(pthread_key_t key)
{
	struct hd__key_value *mine = *values();

	return mine != NULL && key < KEYS && mine[key].of == ld_acq(&keys[key].number) ? mine[key].value : NULL;
}

int hd_pthread_setspecific(pthread_key_t key, const void *value)
{
	struct hd__key_value **mine = values();
	uint64_t number = key < KEYS ? ld_acq(&keys[key].number) : 0;

	if (number % 2 == 0)
		return EINVAL;
	if (*mine == NULL && (*mine = hd__os_alloc(KEYS * sizeof **mine)) == NULL)
		return ENOMEM;
	(*mine)[key] = (struct hd__key_value){ number, (void *)(uintptr_t)value };
	return 0;
}

/* Each destructor is called with the value, which is NULL already; they may set values again, for some rounds. */
void hd__key_values_destroy(struct hd__thread_face *me)
{
	bool again = me->values != NULL;

	for (int round = 0; again && round < PTHREAD_DESTRUCTOR_ITERATIONS; round++) {
		again = false;
		for (unsigned i = 0; i < KEYS; i++) {
			struct hd__key_value *v = &me->values[i];
			void (*destroy)(void *) = ld_rlx(&keys[i].destroy);
			void *value = v->value;
			if (value == NULL || v->of != ld_acq(&keys[i].number) || destroy == NULL)
				continue;
			v->value = NULL;
			destroy(value);
			again = true;
		}
	}
	hd__os_free(me->values);
	me->values = NULL;
}
