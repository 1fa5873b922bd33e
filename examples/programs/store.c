/* store.c - a key-value store that replays a log: the same contents on any number of workers.
 *
 * The first process reads the log from its beginning to its end, and makes a behaviour on the keys of each entry. Entries with a key in common are applied in the order of the
 * log, all others at the same time. A few keys are in most entries, as in real stores. HD_WHEN_LOGGED keeps chance out of the entries: no clock, no waiting,
 * no behaviours inside of behaviours. So the hash of the contents tells whether two replicas have applied the same log. */
#include "../check.h"

#include <heddle.h>

enum { KEYS = 40, ENTRIES = 300 };

struct entry {
	uint64_t value;
	int keys; /* 1: puts a value; 2: moves half of what is under the first to the second */
};

static uint64_t contents[KEYS];
static hd_cown *key[KEYS];
static double chance[KEYS]; /* that a key up to this one is drawn */

static void apply(void *arg, void *const data[])
{
	const struct entry *e = arg;
	uint64_t *first = data[0];

	CHECK(hd_now() == -ENOTSUP); /* what time it is may not matter here */
	if (e->keys == 1) {
		*first = *first * 31 + e->value;
		return;
	}
	uint64_t half = *first / 2, *second = data[1];
	*first -= half;
	*second += half;
}

static uint64_t draw(uint64_t *dice)
{
	*dice = *dice * 6364136223846793005u + 1442695040888963407u;
	return *dice >> 33;
}

/* By Zipf's law: the second key half as often as the first, the third a third as often. */
static int draw_key(uint64_t *dice)
{
	double x = (double)draw(dice) / 2147483648.0;
	int k = 0;

	while (k < KEYS - 1 && chance[k] < x)
		k++;
	return k;
}

static void *replay(void *arg)
{
	uint64_t dice = 1, hash = 0;
	double sum = 0;

	for (int k = 0; k < KEYS; k++) {
		chance[k] = sum += 1.0 / (k + 1);
		CHECK((key[k] = hd_cown_new(&contents[k], NULL)) != NULL);
	}
	for (int k = 0; k < KEYS; k++)
		chance[k] /= sum;
	for (int i = 0; i < ENTRIES; i++) {
		struct entry e = { .value = draw(&dice), .keys = draw(&dice) % 4 == 0 ? 2 : 1 };
		hd_cown *uses[2] = { key[draw_key(&dice)], key[draw_key(&dice)] };
		const struct hd_when how = { .fn = apply,
					     .arg = &e,
					     .size = sizeof e,
					     .uses = uses,
					     .n = (size_t)e.keys,
					     .flags = HD_WHEN_LOGGED };
		CHECK(hd_when_batch(&how, 1) == 0);
	}
	CHECK(hd_quiesce(HD_FOREVER) == 0);
	for (int k = 0; k < KEYS; k++) {
		hash = hash * 1099511628211u + contents[k];
		hd_cown_release(key[k]);
	}
	printf("after %d entries the contents have the hash %016llx\n", ENTRIES, (unsigned long long)hash);
	return arg;
}

int main(void)
{
	return hd_run(NULL, replay, NULL) != 0;
}
