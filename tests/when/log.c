/* when/log.c - behaviours of a log: the same results on any number of workers, and no chance inside. */
#include <heddle/queue.h>

#include "when/common.h"

enum { KEYS = 64, ENTRIES = 4000 };

struct entry {
	unsigned number;
	int n;
};

/* What comes of it depends on the order of all entries with a key in common. */
static void apply(void *arg, void *const data[])
{
	const struct entry *e = arg;
	uint64_t sum = e->number;

	for (int i = 0; i < e->n; i++)
		sum = sum * 6364136223846793005u + *(uint64_t *)data[i];
	for (int i = 0; i < e->n; i++)
		*(uint64_t *)data[i] = (sum ^ sum >> 29) + (unsigned)i;
}

static uint64_t play_log(int entries)
{
	static uint64_t value[KEYS];
	hd_cown *key[KEYS], *uses[3];
	uint64_t hash = 0;
	unsigned dice = 1;

	for (int i = 0; i < KEYS; i++) {
		value[i] = (uint64_t)i;
		key[i] = made_cown(&value[i]);
	}
	for (int i = 0; i < entries; i++) {
		struct entry e = { .number = (unsigned)i };
		e.n = 1 + (int)((dice = dice * 1664525 + 1013904223) >> 30) % 3;
		for (int j = 0; j < e.n; j++) {
			unsigned draw = (dice = dice * 1664525 + 1013904223) >> 16;
			uses[j] = key[(draw % KEYS) * (draw / KEYS % KEYS) / KEYS]; /* low keys more often */
		}
		CHECK_EQ(hd_when_batch(
				 &(struct hd_when){
					 .fn = apply, .arg = &e, .size = sizeof e, .uses = uses, .n = (size_t)e.n, .flags = HD_WHEN_LOGGED },
				 1),
			 0);
	}
	quiesce();
	for (int i = 0; i < KEYS; i++) {
		hash = hash * 31 + value[i];
		hd_cown_release(key[i]);
	}
	return hash;
}

static uint64_t expected;

HD_WORKERS_TEST(log_gives_the_same_results_on_any_number_of_workers)
{
	int entries = hd_is_simulated() ? 60 : hd_scaled(ENTRIES);

	for (int i = 0; i < (hd_is_simulated() ? 1 : 3); i++) {
		uint64_t hash = play_log(entries);
		if (workers == 1 && i == 0)
			expected = hash;
		CHECK_EQ(hash, expected);
	}
	check_none_left();
}

static void *never_runs(void *arg)
{
	CHECK(false);
	return arg;
}

static void never_behaves(void *arg, void *const data[])
{
	(void)arg, (void)data;
	CHECK(false);
}

struct chances {
	hd_cown *other;
	hd_queue *queue;
	hd_port *port;
	hd_noticeboard *board;
	struct hd_semaphore semaphore;
	int ran;
};

static void take_chances(void *arg, void *const data[])
{
	struct chances *c = arg;
	struct hd_message m;
	long item = 0;
	char letter = 0;

	(void)data;
	CHECK_EQ(hd_now(), -ENOTSUP);
	CHECK_EQ(hd_after(HD_SEC(1)), 0);
	CHECK_EQ(hd_spawn(never_runs, NULL), -ENOTSUP);
	CHECK_EQ(hd_when(never_behaves, NULL, c->other), -ENOTSUP);
	CHECK_EQ(hd_when_batch(&(struct hd_when){ .fn = never_behaves, .flags = HD_WHEN_LOGGED }, 1), -ENOTSUP);
	CHECK(hd_when_promise_n((hd_when_maker)NULL, NULL, NULL, 0) == NULL);
	CHECK_EQ(hd_semaphore_wait(&c->semaphore, HD_FOREVER), -ENOTSUP);
	CHECK_EQ(hd_semaphore_wait(&c->semaphore, 0), -ENOTSUP);
	CHECK_EQ(hd_queue_next(c->queue, &item, HD_FOREVER), -ENOTSUP);
	CHECK_EQ(hd_queue_put(c->queue, &item, HD_FOREVER), -ENOTSUP);
	CHECK_EQ(hd_sleep(HD_MS(1)), -ENOTSUP);
	CHECK_EQ(hd_receive(NULL, &m, HD_FOREVER), -ENOTSUP);
	CHECK_EQ(hd_send(c->port, 1, NULL, 0, HD_FOREVER), -ENOTSUP);
	CHECK_EQ(hd_call(c->port, 1, NULL, 0, &m, HD_FOREVER), -ENOTSUP);
	CHECK_EQ(hd_noticeboard_read(c->board, &letter), 0);
	CHECK_EQ(letter, 0);
	hd_yield();
	c->ran = 1;
}

HD_WORKERS_TEST(log_keeps_chance_out)
{
	struct chances c = { .other = made_cown(NULL), .queue = hd_queue_new(sizeof(long), 1), .port = hd_port_new(NULL), .board = hd_noticeboard_new("a", 1) };
	hd_cown *mine = made_cown(NULL);

	(void)workers;
	CHECK(c.queue != NULL && c.port != NULL && c.board != NULL);
	CHECK_EQ(hd_semaphore_signal(&c.semaphore), 0);
	CHECK_EQ(hd_when_batch(&(struct hd_when){ .fn = take_chances, .arg = &c, .uses = &mine, .n = 1, .flags = HD_WHEN_LOGGED }, 1), 0);
	quiesce();
	CHECK_EQ(c.ran, 1);
	CHECK_EQ(hd_semaphore_try_wait(&c.semaphore), 0); /* the signal is still there */
	CHECK_EQ(hd_queue_length(c.queue), 0);
	hd_queue_drop(c.queue);
	hd_noticeboard_drop(c.board);
	hd_port_release(c.port);
	hd_cown_release(c.other);
	hd_cown_release(mine);
	check_none_left();
}

static struct hd_semaphore goes_on;
static int second_answer;

static void *makes_one(void *arg)
{
	second_answer = hd_when_batch(&(struct hd_when){ .fn = apply, .arg = &(struct entry){ 0 }, .size = sizeof(struct entry),
							 .flags = HD_WHEN_LOGGED },
				      1);
	if (arg != NULL)
		CHECK_EQ(hd_semaphore_wait(&goes_on, HD_FOREVER), 0);
	return NULL;
}

/* One process alone makes them; when it has ended, another one may. */
HD_WORKERS_TEST(log_has_one_dispatcher)
{
	(void)workers;
	hd_pid first = born(hd_spawn(makes_one, &goes_on));
	while (state_of(first) != HD_WAITING)
		hd_yield();
	CHECK_EQ(second_answer, 0);
	CHECK_EQ(hd_join(born(hd_spawn(makes_one, NULL)), NULL, HD_FOREVER), 0);
	CHECK_EQ(second_answer, -EBUSY);
	CHECK_EQ(hd_semaphore_signal(&goes_on), 0);
	CHECK_EQ(hd_join(first, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_join(born(hd_spawn(makes_one, NULL)), NULL, HD_FOREVER), 0);
	CHECK_EQ(second_answer, 0);
	CHECK_EQ(hd_when_batch(&(struct hd_when){ .fn = never_behaves, .flags = HD_WHEN_LOGGED | HD_WHEN_MAY_BLOCK }, 1), -EINVAL);
	CHECK_EQ(hd_when_batch(&(struct hd_when){ .fn = never_behaves, .flags = 4 }, 1), -EINVAL);
	quiesce();
}
