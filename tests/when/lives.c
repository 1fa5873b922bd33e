/* when/lives.c - the process of a behaviour: it is another one each time, whatever it shares with the one before it. */
#include <heddle/port.h>

#include "when/common.h"

enum { LIVES = 300, WATCHES = 500, KILLED = 7 };

static hd_cown *chain;
static hd_pid ids[LIVES];
static int left;

static void note_id(void *arg, void *const data[])
{
	(void)arg, (void)data;
	ids[--left] = hd_self();
	if (left > 0)
		CHECK_EQ(hd_when(note_id, NULL, chain), 0);
}

static int compare_ids(const void *x, const void *y)
{
	hd_pid a = *(const hd_pid *)x, b = *(const hd_pid *)y;

	return (a > b) - (a < b);
}

HD_WORKERS_TEST(when_is_another_process_each_time)
{
	uint64_t before = stats_now().live_processes;

	(void)workers;
	chain = made_cown(NULL);
	left = LIVES;
	CHECK_EQ(hd_when(note_id, NULL, chain), 0);
	quiesce();
	while (stats_now().live_processes != before) /* the last of them is over, and about to end */
		hd_yield();
	qsort(ids, LIVES, sizeof ids[0], compare_ids);
	for (int i = 0; i < LIVES; i++) {
		CHECK(ids[i] > 0);
		CHECK(i == 0 || ids[i] != ids[i - 1]);
		CHECK_EQ(hd_kill(ids[i], 0), -ESRCH);
		CHECK_EQ(hd_priority(ids[i]), -ESRCH);
	}
	hd_cown_release(chain);
	check_none_left();
}

/* What one life has changed in its block is as at birth in the next one. */
static void leave_traces(void *arg, void *const data[])
{
	(void)arg, (void)data;
	hd_pin();
	CHECK_EQ(hd_set_priority(hd_self(), HD_PRIORITY_LOWEST), 0);
	CHECK_EQ(hd_set_policy(hd_self(), HD_RR), 0);
	hd_yield();
}

static void leave_a_pin(void *arg, void *const data[])
{
	(void)arg, (void)data;
	CHECK_EQ(hd_pin(), 0);
}

static void find_none(void *arg, void *const data[])
{
	struct hd_process_info info;

	(void)arg, (void)data;
	CHECK_EQ(hd_process_info(hd_self(), &info), 0);
	CHECK_EQ(info.priority, HD_PRIORITY_USER);
	CHECK_EQ(info.policy, HD_FIFO);
	CHECK_EQ(info.switches, 1);
	CHECK_EQ(hd_unpin(), -EINVAL);
}

HD_PROCESS_TEST(when_finds_no_traces_of_another_life)
{
	hd_cown *c = made_cown(NULL);

	for (int i = 0; i < 50; i++) {
		CHECK_EQ(hd_when(i % 4 == 0 ? leave_traces : i % 4 == 2 ? leave_a_pin : find_none, NULL, c), 0);
		if (i % 7 == 0)
			quiesce();
	}
	quiesce();
	hd_cown_release(c);
	check_none_left();
}

/* ---- threads that know of its end ---- */

static hd_pid latest; /* that has begun */
static long ran, dropped, done;

static void run(void *arg, void *const data[])
{
	(void)arg, (void)data;
	__atomic_store_n(&latest, hd_self(), __ATOMIC_RELEASE);
	add(&ran, 1);
}

static void drop_one(void *arg)
{
	(void)arg;
	add(&dropped, 1);
}

/* Each watch is told once, of the end of the process that was watched: it returned, or was killed with our reason, or had ended before. */
static void *watch(void *unused)
{
	hd_port *port = hd_port_new(NULL);
	hd_pid last = 0;
	int watches = 0;
	struct hd_message m;

	(void)unused;
	CHECK(port != NULL);
	while (value_of(&done) == 0) {
		hd_pid pid = __atomic_load_n(&latest, __ATOMIC_ACQUIRE);
		if (pid != last && watches < WATCHES) {
			CHECK_EQ(hd_watch(pid, port), 0);
			last = pid;
			watches++;
		}
		hd_yield();
	}
	for (; watches > 0; watches--) {
		CHECK_EQ(hd_receive(port, &m, HD_FOREVER), 0);
		struct hd_ended ended;
		CHECK_EQ(m.size, sizeof ended);
		memcpy(&ended, m.data, sizeof ended);
		CHECK(ended.end.kind == HD_END_KILLED ? ended.end.err == KILLED
						      : ended.end.err == 0 || ended.end.err == -ESRCH);
		hd_message_drop(&m);
	}
	CHECK_EQ(hd_receive(port, &m, 0), -ETIMEDOUT);
	hd_port_release(port);
	return NULL;
}

static void *kill_them(void *unused)
{
	(void)unused;
	while (value_of(&done) == 0) {
		int err = hd_kill(__atomic_load_n(&latest, __ATOMIC_ACQUIRE), KILLED);
		CHECK(err == 0 || err == -ESRCH);
		hd_yield();
	}
	return NULL;
}

static void make_many(hd_cown *c, int n)
{
	struct hd_when how = { .fn = run, .drop = drop_one, .uses = &c, .n = 1 };

	for (int i = 0; i < n; i++) {
		if (i % 2 == 0)
			CHECK_EQ(hd_when(run, NULL, c), 0);
		else
			CHECK_EQ(hd_when_batch(&how, 1), 0);
		if (i % 16 == 15)
			quiesce();
	}
}

HD_WORKERS_TEST(when_that_others_know_ends_as_any_process)
{
	hd_cown *c = made_cown(NULL);
	int n = many(4000) / 16 * 16 + 16;

	(void)workers;
	ran = dropped = 0;
	set(&done, 0);
	make_many(c, 1);
	quiesce();
	hd_pid a = hd_spawn(watch, NULL), b = hd_spawn(kill_them, NULL), d = hd_spawn(watch, NULL);
	make_many(c, n);
	quiesce();
	set(&done, 1);
	CHECK_EQ(hd_join(a, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_join(b, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_join(d, NULL, HD_FOREVER), 0);
	CHECK_EQ(value_of(&ran), n + 1);
	CHECK_EQ(value_of(&dropped), n / 2);
	hd_cown_release(c);
	check_none_left();
}

/* ---- the end of the runtime ---- */

static void *leave_one_behind(void *unused)
{
	hd_promise *never = hd_promise_new();

	(void)unused;
	CHECK(never != NULL);
	chain = made_cown(NULL);
	CHECK_EQ(hd_when(find_none, NULL, chain), 0);
	quiesce();
	CHECK_EQ(hd_when_after(never, find_none, NULL, chain), 0); /* in the memory, and with the block, of the first */
	hd_promise_release(never);
	CHECK_EQ(hd_shutdown(4), 0);
	return NULL;
}

HD_TEST(when_that_waits_for_a_promise_is_dropped_with_the_block_of_another_life)
{
	CHECK_EQ(run_with_workers(1, leave_one_behind, NULL), 4);
	hd_cown_release(chain);
}
