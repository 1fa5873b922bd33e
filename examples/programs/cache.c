/* cache.c - a cache under a read-write lock: those that find their key read together; one that does not writes alone.
 *
 * Between the unlock of a reader that has not found its key and its lock for writing, another process may have put the key in: so
 * the writer looks again. Without that second look a key would be loaded twice now and then. */
#include "../check.h"

#include <heddle.h>

enum { KEYS = 10, CLIENTS = 8, LOOKUPS = 25 };

static struct hd_rwlock lock; /* guards what follows */
static struct {
	bool present;
	int value;
} cache[KEYS];
static int loads;

static int load(int key)
{
	loads++;
	return key * 100;
}

static int look_up(int key)
{
	CHECK(hd_rwlock_read(&lock, HD_FOREVER) == 0);
	bool found = cache[key].present;
	int value = cache[key].value;
	hd_rwlock_unlock(&lock);
	if (found)
		return value;

	CHECK(hd_rwlock_write(&lock, HD_FOREVER) == 0);
	if (!cache[key].present) {
		cache[key].value = load(key);
		cache[key].present = true;
	}
	value = cache[key].value;
	hd_rwlock_unlock(&lock);
	return value;
}

static void *client(void *arg)
{
	int number = (int)(intptr_t)arg;

	for (int i = 0; i < LOOKUPS; i++) {
		int key = (number + i) % KEYS;
		CHECK(look_up(key) == key * 100);
	}
	return NULL;
}

static void *first(void *arg)
{
	struct hd_group clients = { 0 };

	for (intptr_t i = 0; i < CLIENTS; i++)
		CHECK(hd_group_spawn(&clients, client, (void *)i) > 0);
	CHECK(hd_group_wait(&clients, HD_FOREVER) == 0);
	CHECK(loads == KEYS);
	printf("%d lookups, %d loads\n", CLIENTS * LOOKUPS, loads);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
