/* process/table.c - ids and control blocks: an id is used once. */
#include "process/table.h"

#include <stdlib.h>

#include "harness/harness.h"

static struct hd__table table;
static struct hd__blocks own;

static void begin(void)
{
	CHECK_EQ(hd__table_init(&table), 0);
}

/* As spawn does: the block's next id comes alive. */
static struct hd_process *take_alive(struct hd__blocks *blocks)
{
	struct hd_process *p = hd__table_take(&table, blocks);

	if (p != NULL) {
		CHECK(p->control & HD__DEAD);
		p->control = HD__CONTROL(HD__GENERATION(p->control), HD_FIFO, 40, 0);
	}
	return p;
}

static void end(struct hd__blocks *blocks, struct hd_process *p)
{
	p->control |= HD__DEAD;
	hd__table_drop(&table, blocks, p);
}

static bool names(hd_pid pid, const struct hd_process *p)
{
	struct hd_process *found = hd__table_find(&table, pid);
	return found == p && hd__alive(found->control, pid);
}

HD_TEST(table_finds_the_living_and_not_the_dead)
{
	begin();
	struct hd_process *p = take_alive(&own);
	hd_pid pid = hd__pid(&table, p);

	CHECK(pid > 0);
	CHECK(names(pid, p));
	end(&own, p);
	CHECK(!names(pid, p));
	CHECK(take_alive(&own) == p); /* the block is used again: last in, first out */
	CHECK(!names(pid, p));
	CHECK(names(hd__pid(&table, p), p));
	hd__table_fini(&table);
}

HD_TEST(table_finds_nothing_under_an_id_that_never_was)
{
	begin();
	struct hd_process *p = take_alive(NULL);
	hd_pid pid = hd__pid(&table, p);

	CHECK(hd__table_find(&table, 0) == NULL);
	CHECK(hd__table_find(&table, -1) == NULL);
	CHECK(hd__table_find(&table, -pid) == NULL);
	CHECK(hd__table_find(&table, INT64_MIN) == NULL);
	CHECK(hd__table_find(&table, INT64_MAX) == NULL); /* its slot was never made */
	CHECK(!names(pid + ((hd_pid)1 << HD__SLOT_BITS), p));
	CHECK(!names(pid - ((hd_pid)1 << HD__SLOT_BITS), p));
	hd__table_fini(&table);
}

static int compare(const void *a, const void *b)
{
	hd_pid x = *(const hd_pid *)a, y = *(const hd_pid *)b;
	return x < y ? -1 : x > y;
}

/* Blocks come and go in a random order, through a worker's store and through the shared list; no id comes twice. */
HD_TEST(table_never_gives_an_id_twice)
{
	enum { AT_ONCE = 100 };
	struct hd_process *live[AT_ONCE] = { NULL };
	int n = hd_scaled(1000000), made = 0;
	hd_pid *pids = malloc((size_t)n * sizeof *pids);
	uint64_t seed = 1;

	begin();
	while (made < n) {
		seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		struct hd_process **p = &live[(seed >> 33) % AT_ONCE];
		struct hd__blocks *blocks = seed >> 32 & 1 ? &own : NULL;
		if (*p != NULL) {
			end(blocks, *p);
			*p = NULL;
		} else {
			*p = take_alive(blocks);
			pids[made++] = hd__pid(&table, *p);
		}
	}
	qsort(pids, (size_t)n, sizeof *pids, compare);
	CHECK(pids[0] > 0);
	for (int i = 1; i < n; i++)
		CHECK(pids[i - 1] != pids[i]);
	int alive = 0;
	for (int i = 0; i < AT_ONCE; i++)
		alive += live[i] != NULL;
	CHECK_EQ(table.taken + own.taken, alive);
	free(pids);
	hd__table_fini(&table);
}

/* A plain thread spawns and a worker buries, or the other way round, for ever: blocks must find their way back. */
static void circulate(struct hd__blocks *takes, struct hd__blocks *drops)
{
	begin();
	for (int i = 0; i < hd_scaled(100000); i++)
		end(drops, take_alive(takes));
	CHECK(table.made < 1000);
	CHECK_EQ(table.taken + own.taken, 0);
	hd__table_fini(&table);
}

HD_TEST(table_uses_blocks_again_that_threads_take_and_a_worker_drops)
{
	circulate(NULL, &own);
}

HD_TEST(table_uses_blocks_again_that_a_worker_takes_and_threads_drop)
{
	circulate(&own, NULL);
}

/* A slot's last generation: it ends, its id stays dead, and the slot never comes back. */
static void retire(struct hd__blocks *blocks)
{
	begin();
	struct hd_process *p = hd__table_take(&table, blocks);
	p->control = HD__CONTROL(HD__GENERATION_MAX, HD_FIFO, 40, 0);
	hd_pid pid = hd__pid(&table, p);

	CHECK(pid > 0);
	CHECK(names(pid, p));
	end(blocks, p);
	CHECK(!names(pid, p));
	for (int i = 0; i < 1000; i++)
		CHECK(take_alive(blocks) != p);
	CHECK(!names(pid, p));
	CHECK_EQ(table.taken + own.taken, 1000); /* what is retired is not in use */
	hd__table_fini(&table);
}

HD_TEST(table_retires_a_slot_whose_generations_are_used_up)
{
	retire(&own);
}

HD_TEST(table_retires_a_slot_that_a_plain_thread_dropped)
{
	retire(NULL);
}

HD_TEST(table_gives_the_last_but_one_generation_one_more_life)
{
	begin();
	struct hd_process *p = hd__table_take(&table, &own);
	p->control = HD__CONTROL(HD__GENERATION_MAX - 1, HD_FIFO, 40, 0);
	end(&own, p);
	CHECK(take_alive(&own) == p);
	CHECK_EQ(HD__GENERATION(p->control), HD__GENERATION_MAX);
	CHECK(hd__pid(&table, p) > 0);
	hd__table_fini(&table);
}

HD_TEST(table_gives_as_many_blocks_as_its_limit_and_no_more)
{
	enum { LIMIT = 100 };
	struct hd_process *p[LIMIT];

	begin();
	table.limit = LIMIT;
	for (int i = 0; i < LIMIT; i++) {
		p[i] = take_alive(&own);
		CHECK(p[i] != NULL);
	}
	CHECK(take_alive(&own) == NULL);
	CHECK(take_alive(NULL) == NULL);
	CHECK_EQ(own.taken, LIMIT);
	end(NULL, p[42]); /* one ends, one can begin */
	CHECK(take_alive(&own) == p[42]);
	CHECK(take_alive(&own) == NULL);
	hd__table_fini(&table);
}

HD_TEST_DIES(table_refuses_to_free_the_living, "a process that has not ended was freed")
{
	begin();
	hd__table_drop(&table, &own, take_alive(&own));
}
