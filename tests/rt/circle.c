/* rt/circle.c - circles of processes that wait for each other are reported when they close, and nothing else is. */
#include "rt/capture.h"

#include <errno.h>
#include <fcntl.h>

#include "harness/process.h"
#include "sched/workers.h"

static struct hd_mutex a, b;
static struct hd_monitor monitor;
static struct hd_rwlock rwlock;
static struct hd_semaphore held;

static hd_pid named(const char *name, hd_entry entry)
{
	hd_pid pid = hd_spawn_with(&(struct hd_spawn){ .name = name }, entry, NULL);
	CHECK(pid > 0);
	return pid;
}

static void meet(void)
{
	static struct hd_barrier barrier = HD_BARRIER(2);
	CHECK(hd_barrier_wait(&barrier, HD_FOREVER) >= 0);
}

static void *a_then_b(void *arg)
{
	CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
	meet();
	CHECK_EQ(hd_mutex_lock(&b, HD_FOREVER), 0);
	return arg;
}

static void *b_then_a(void *arg)
{
	CHECK_EQ(hd_mutex_lock(&b, HD_FOREVER), 0);
	meet();
	CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
	return arg;
}

/* Both are stuck, and the first process is not. */
static void *close_circle(void *arg)
{
	hd_pid pids[] = { named("ann", a_then_b), named("bob", b_then_a) };
	struct hd_process_info info = { .why = HD_WAIT_NONE };

	for (int i = 0; i < 2; i++) {
		do {
			hd_yield();
			CHECK_EQ(hd_process_info(pids[i], &info), 0);
		} while (info.why != HD_WAIT_MUTEX);
		CHECK_EQ(info.holder, pids[!i]);
	}
	hd_shutdown(0);
	return arg;
}

/* What it said. */
static const char *run(hd_entry entry, enum hd_deadlock deadlock, unsigned workers)
{
	const struct hd_config config = { .workers = workers, .deadlock = deadlock, .fixed = true };

	capture_begin();
	int code = hd_run(&config, entry, &workers);
	const char *said = capture_end();
	CHECK_EQ(code, 0);
	return said;
}

HD_TEST(circle_of_two_mutexes_is_reported_once_with_names_and_places)
{
	for (unsigned workers = 1; workers <= 2; workers++) {
		const char *said = run(close_circle, HD_DEADLOCK_REPORT, workers);
		CHECK_EQ(times_said(said, "a circle of 2 processes"),
			 1); /* though both may have closed it, at the same moment */
		CHECK_EQ(times_said(said, "ann #1 waits in hd_mutex_lock for bob #2, here:"), 1);
		CHECK_EQ(times_said(said, "bob #2 waits in hd_mutex_lock for ann #1, here:"), 1);
		CHECK_EQ(times_said(said, "heddle:     in a_then_b, circle.c:"), 1);
		CHECK_EQ(times_said(said, "heddle:     in b_then_a, circle.c:"), 1);
		a = b = (struct hd_mutex){ .depth = 0 };
	}
}

/* Both begin to wait at the same moment, each on a worker of its own. */
static long holders;

static void *close_it_together(void *mine)
{
	CHECK_EQ(hd_mutex_lock(mine, HD_FOREVER), 0);
	add(&holders, 1);
	while (value_of(&holders) < 2)
		sched_yield();
	CHECK_EQ(hd_mutex_lock(mine == &a ? &b : &a, HD_FOREVER), 0);
	return NULL;
}

static void *close_circle_together(void *arg)
{
	static struct crew crew;
	struct hd_process_info info = { .why = HD_WAIT_NONE };

	start_crew(&crew, NULL, 2, close_it_together, (void *[]){ &a, &b });
	for (int i = 0; i < 2; i++)
		while (info.why != HD_WAIT_MUTEX || info.pid != crew.members[i].pid) {
			hd_sleep(HD_US(50));
			CHECK_EQ(hd_process_info(crew.members[i].pid, &info), 0);
		}
	hd_shutdown(0);
	return arg;
}

HD_TEST(circle_that_two_processes_close_together_is_reported_once)
{
	for (int i = 0; another_round(i, 50); i++) {
		a = b = (struct hd_mutex){ .depth = 0 };
		set(&holders, 0);
		const char *said = run(close_circle_together, HD_DEADLOCK_REPORT, 2);
		CHECK_EQ(times_said(said, "a circle of 2 processes"), 1);
	}
}

HD_TEST(circle_is_not_looked_for_unless_asked)
{
	const char *said = run(close_circle, HD_DEADLOCK_IGNORE, 1);
	CHECK_STR(said, "");
}

HD_TEST_DIES(circle_aborts_where_that_was_asked, "a circle of 2 processes")
{
	const struct hd_config config = { .workers = 1, .deadlock = HD_DEADLOCK_ABORT, .fixed = true };
	CHECK_EQ(hd_run(&config, close_circle, NULL), 0);
}

/* ann waits for the end of bob, who waits to write what cid writes; he waits to enter the monitor that ann is in. */
static hd_pid bob;
static struct hd_semaphore go;

static void *cid_enters(void *arg)
{
	CHECK_EQ(hd_rwlock_write(&rwlock, HD_FOREVER), 0);
	CHECK_EQ(hd_semaphore_wait(&go, HD_FOREVER), 0);
	CHECK_EQ(hd_monitor_enter(&monitor, HD_FOREVER), 0);
	return arg;
}

static void *bob_writes(void *arg)
{
	CHECK_EQ(hd_rwlock_write(&rwlock, HD_FOREVER), 0);
	return arg;
}

static void *ann_joins(void *arg)
{
	CHECK_EQ(hd_monitor_enter(&monitor, HD_FOREVER), 0);
	CHECK_EQ(hd_join(bob, NULL, HD_FOREVER), 0);
	return arg;
}

static void *close_mixed_circle(void *arg)
{
	named("cid", cid_enters);
	hd_yield();
	bob = named("bob", bob_writes);
	hd_yield();
	named("ann", ann_joins);
	hd_yield();
	CHECK_EQ(hd_semaphore_signal(&go), 0);
	hd_yield();
	hd_shutdown(0);
	return arg;
}

HD_TEST(circle_of_a_join_a_rwlock_and_a_monitor_is_reported)
{
	const char *said = run(close_mixed_circle, HD_DEADLOCK_REPORT, 1);
	CHECK_EQ(times_said(said, "a circle of 3 processes"), 1);
	CHECK_EQ(times_said(said, "ann #3 waits in hd_join for bob #2"), 1);
	CHECK_EQ(times_said(said, "bob #2 waits in hd_rwlock_write for cid #1"), 1);
	CHECK_EQ(times_said(said, "cid #1 waits in hd_mutex_lock for ann #3"), 1);
}

/* One of them waits with a deadline: that is no deadlock. */
static void *b_then_a_for_a_while(void *arg)
{
	CHECK_EQ(hd_mutex_lock(&b, HD_FOREVER), 0);
	meet();
	CHECK_EQ(hd_mutex_lock(&a, hd_after(HD_MS(2))), -ETIMEDOUT);
	CHECK_EQ(hd_mutex_unlock(&b), 0);
	return arg;
}

static void *almost_close_circle(void *arg)
{
	hd_pid pids[] = { named("ann", a_then_b), named("bob", b_then_a_for_a_while) };

	for (int i = 0; i < 2; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	return arg;
}

HD_TEST(circle_that_a_deadline_opens_is_none)
{
	const char *said = run(almost_close_circle, HD_DEADLOCK_REPORT, 1);
	CHECK_STR(said, "");
}

/* Many who lock in the same order meet all the time, and never in a circle. */
static void *in_order(void *arg)
{
	for (int i = 0; i < hd_scaled(200); i++) {
		CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
		hd_yield();
		CHECK_EQ(hd_mutex_lock(&b, HD_FOREVER), 0);
		hd_yield();
		CHECK_EQ(hd_mutex_unlock(&a), 0);
		hd_yield();
		CHECK_EQ(hd_mutex_unlock(&b), 0);
	}
	return arg;
}

static void *lock_in_order(void *arg)
{
	hd_pid pids[8];

	for (int i = 0; i < 8; i++)
		pids[i] = named("one of many", in_order);
	for (int i = 0; i < 8; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	return arg;
}

HD_TEST(circle_is_not_seen_where_there_is_none)
{
	for (unsigned workers = 1; workers <= 4; workers++) {
		const char *said = run(lock_in_order, HD_DEADLOCK_REPORT, workers);
		CHECK_STR(said, "");
	}
}

/* Its friend waits for it, and it asks something of the friend, who lives elsewhere: that ends the friend's wait, a moment later. */
enum request { TERMINATE, SUSPEND, CANCEL };
static enum request request;
static struct crew friends;

static void *ask_friend(void *arg)
{
	struct hd_process_info info = { .why = HD_WAIT_NONE };
	hd_pid friend = friends.members[1].pid;

	if (arg != NULL) {
		ANY_ANSWER(hd_join(friends.members[0].pid, NULL, HD_FOREVER));
		return NULL;
	}
	while (info.why != HD_WAIT_JOIN) {
		CHECK_EQ(hd_process_info(friend, &info), 0);
		sched_yield();
	}
	switch (request) {
	case TERMINATE:
		CHECK_EQ(hd_terminate(friend, HD_FOREVER), 0);
		break;
	case SUSPEND:
		CHECK_EQ(hd_suspend(friend, HD_FOREVER), 0);
		CHECK_EQ(hd_resume(friend), 0);
		break;
	case CANCEL:
		CHECK_EQ(hd_cancel(friend), 0);
		CHECK_EQ(hd_join(friend, NULL, HD_FOREVER), 0);
	}
	return NULL;
}

static void *ask_among_friends(void *arg)
{
	start_crew(&friends, NULL, 2, ask_friend, (void *[]){ NULL, &friends });
	return arg;
}

HD_TEST(circle_that_a_request_on_its_way_opens_is_none)
{
	for (request = TERMINATE; request <= CANCEL; request++) {
		const char *said = run(ask_among_friends, HD_DEADLOCK_REPORT, 2);
		CHECK_STR(said, "");
	}
}

/* ---- owners that have ended ---- */

/* What keeper takes, and does not give up; ann wants it. */
enum kind { MUTEX, MONITOR, RWLOCK };
static enum kind kind;
static struct hd_semaphore ann_goes, keeper_ends;
static hd_pid ann, keeper;
static hd_time anns_patience;

static int take(hd_time until)
{
	return kind == MUTEX	 ? hd_mutex_lock(&a, until)
	       : kind == MONITOR ? hd_monitor_enter(&monitor, until)
				 : hd_rwlock_write(&rwlock, until);
}

static void *keep(void *arg)
{
	CHECK_EQ(take(HD_FOREVER), 0);
	CHECK_EQ(hd_semaphore_signal(&held), 0);
	CHECK_EQ(hd_semaphore_wait(&keeper_ends, HD_FOREVER), 0);
	return arg;
}

static void *want(void *arg)
{
	CHECK_EQ(hd_semaphore_wait(&ann_goes, HD_FOREVER), 0);
	CHECK_EQ(take(anns_patience), -ETIMEDOUT);
	return arg;
}

static void forget_locks(void)
{
	a = (struct hd_mutex){ .depth = 0 };
	hd_monitor_init(&monitor, 0);
	rwlock = (struct hd_rwlock){ .readers = 0 };
}

static void start_both(hd_time patience)
{
	forget_locks();
	anns_patience = patience;
	ann = named("ann", want);
	keeper = named("keeper", keep);
	CHECK_EQ(hd_semaphore_wait(&held, HD_FOREVER), 0);
}

static void end_keeper(void)
{
	CHECK_EQ(hd_semaphore_signal(&keeper_ends), 0);
	CHECK_EQ(hd_join(keeper, NULL, HD_FOREVER), 0);
}

static void ann_waits(void)
{
	struct hd_process_info info = { .holder = 0 };

	CHECK_EQ(hd_semaphore_signal(&ann_goes), 0);
	while (info.holder != keeper && info.state != HD_ENDED) { /* its time may be up by now */
		hd_sleep(HD_US(100));
		CHECK_EQ(hd_process_info(ann, &info), 0);
	}
}

static void wait_for_report(void)
{
	while (strstr(captured(), ", here:") == NULL)
		hd_sleep(HD_US(100));
}

static void *owner_ends_first(void *arg)
{
	start_both(HD_FOREVER);
	end_keeper();
	CHECK_EQ(hd_semaphore_signal(&ann_goes), 0);
	wait_for_report();
	hd_shutdown(0);
	return arg;
}

static void *owner_ends_while_ann_waits(void *arg)
{
	start_both(HD_FOREVER);
	ann_waits();
	end_keeper();
	wait_for_report();
	hd_shutdown(0);
	return arg;
}

HD_TEST(wait_for_what_an_ended_process_has_is_reported_by_name)
{
	static const unsigned workers[] = { 1, 2, 8 };
	static const char *const calls[] = { "hd_mutex_lock", "hd_mutex_lock", "hd_rwlock_write" };
	char line[128];

	for (int i = 0; i < 3; i++)
		for (int late = 0; late < 2; late++)
			for (kind = MUTEX; kind <= RWLOCK; kind++) {
				const char *said = run(late ? owner_ends_while_ann_waits : owner_ends_first, HD_DEADLOCK_REPORT,
						       workers[i]);
				CHECK_EQ(times_said(said, "heddle: deadlock: "), 1);
				snprintf(line, sizeof line,
					 "ann #1 waits in %s for keeper #2, which has ended, here:", calls[kind]);
				CHECK_EQ(times_said(said, line), 1);
			}
}

/* The runtime tells keeper first, which is on another worker, and then many others before ann. */
static void *keep_or_end(void *arg)
{
	return arg == &keeper ? keep(NULL) : NULL;
}

static void *end_while_ann_waits(void *arg)
{
	static struct crew crew;

	forget_locks();
	anns_patience = HD_FOREVER;
	start_crew(&crew, NULL, 2, keep_or_end, (void *[]){ &keeper, NULL });
	keeper = crew.members[0].pid;
	for (int i = 0; i < hd_scaled(3900); i++)
		CHECK(hd_spawn_with(&(struct hd_spawn){ .suspended = true }, keep_or_end, NULL) > 0);
	ann = named("ann", want);
	CHECK_EQ(hd_semaphore_wait(&held, HD_FOREVER), 0);
	ann_waits();
	hd_shutdown(0);
	return arg;
}

static void *owner_ends_but_ann_is_patient(void *arg)
{
	start_both(hd_after(HD_MS(5)));
	ann_waits();
	end_keeper();
	CHECK_EQ(hd_join(ann, NULL, HD_FOREVER), 0);
	return arg;
}

HD_TEST(wait_with_a_deadline_is_not_reported_when_the_owner_has_ended)
{
	static const unsigned workers[] = { 1, 2, 8 };

	for (int i = 0; i < 3; i++)
		for (kind = MUTEX; kind <= RWLOCK; kind++)
			CHECK_STR(run(owner_ends_but_ann_is_patient, HD_DEADLOCK_REPORT, workers[i]), "");
}

HD_TEST(owners_that_the_end_of_the_runtime_ends_are_not_reported)
{
	for (int i = 0; another_round(i, 20); i++)
		CHECK_STR(run(end_while_ann_waits, HD_DEADLOCK_REPORT, 2), "");
}

HD_TEST_DIES(wait_for_what_an_ended_process_has_aborts_where_that_was_asked, "keeper #2, which has ended")
{
	const struct hd_config config = { .workers = 1, .deadlock = HD_DEADLOCK_ABORT, .fixed = true };
	capture_file = open("/dev/null", O_RDONLY);
	CHECK_EQ(hd_run(&config, owner_ends_first, NULL), 0);
}

/* ---- priorities upside down ---- */

static void *hold_a(void *arg)
{
	CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
	CHECK_EQ(hd_semaphore_signal(&held), 0);
	hd_yield();
	CHECK_EQ(hd_mutex_unlock(&a), 0);
	return arg;
}

static void *want_a(void *arg)
{
	CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
	CHECK_EQ(hd_mutex_unlock(&a), 0);
	return arg;
}

static void *invert(void *arg)
{
	hd_pid low = hd_spawn_at(20, hold_a, NULL);

	CHECK_EQ(hd_semaphore_wait(&held, HD_FOREVER), 0);
	hd_pid high =
		hd_spawn_with(&(struct hd_spawn){ .name = "high", .priority = 60 }, want_a, NULL); /* and we are between them */
	CHECK_EQ(hd_join(high, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_join(low, NULL, HD_FOREVER), 0);
	return arg;
}

HD_TEST(inversion_is_reported_unless_the_mutex_prevents_it)
{
	const char *said = run(invert, HD_DEADLOCK_REPORT, 1);
	CHECK_EQ(times_said(said, "priority inversion: "), 1);
	CHECK_EQ(times_said(said, "high #2 of priority 60 waits in hd_mutex_lock for process #1 of priority 20"), 1);
	hd_mutex_init(&a, HD_INHERIT);
	said = run(invert, HD_DEADLOCK_REPORT, 1);
	CHECK_STR(said, "");
}

/* ---- senders that wait for room, with calls and mutexes between them ---- */

static hd_port *boxes[2];

/* A port of the caller's with room for one message, which is there. */
static void make_full_port(int i)
{
	boxes[i] = hd_port_new(&(struct hd_port_options){ .capacity = 1, .full = HD_FULL_BLOCK });
	CHECK(boxes[i] != NULL);
	CHECK_EQ(hd_send(boxes[i], 1, NULL, 0, 0), 0);
}

static void *sends_to_bob(void *arg)
{
	make_full_port(0);
	CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
	meet();
	ANY_ANSWER(hd_send(boxes[1], 1, NULL, 0, HD_FOREVER)); /* ends when the runtime does, perhaps because the other has ended before */
	return arg;
}

static void *sends_to_ann(void *arg)
{
	make_full_port(1);
	meet();
	ANY_ANSWER(hd_send(boxes[0], 1, NULL, 0, HD_FOREVER)); /* ends when the runtime does, perhaps because the other has ended before */
	return arg;
}

static void *calls_ann_in_full_port(void *arg)
{
	make_full_port(1);
	meet();
	ANY_ANSWER(hd_call(boxes[0], 1, NULL, 0, NULL, HD_FOREVER)); /* ends when the runtime does, perhaps because the other has ended before */
	return arg;
}

static void *locks_what_ann_has(void *arg)
{
	make_full_port(1);
	meet();
	CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
	return arg;
}

/* ann is called by bob, takes the call, and waits for room in bob's port. */
static void *is_called_and_sends(void *arg)
{
	struct hd_message m;

	boxes[0] = hd_port_new(NULL);
	CHECK(boxes[0] != NULL);
	meet();
	CHECK_EQ(hd_receive(boxes[0], &m, HD_FOREVER), 0);
	ANY_ANSWER(hd_send(boxes[1], 1, NULL, 0, HD_FOREVER)); /* ends when the runtime does, perhaps because the other has ended before */
	return arg;
}

static const struct jam {
	hd_entry ann, bob;
	enum hd_wait waits;
	const char *in;
} jams[] = { { sends_to_bob, sends_to_ann, HD_WAIT_SEND, "hd_send" },
	     { sends_to_bob, calls_ann_in_full_port, HD_WAIT_SEND, "hd_send" },
	     { sends_to_bob, locks_what_ann_has, HD_WAIT_MUTEX, "hd_mutex_lock" },
	     { is_called_and_sends, calls_ann_in_full_port, HD_WAIT_CALL, "hd_call" } };
static const struct jam *jam;

static void *close_jam(void *arg)
{
	hd_pid pids[] = { named("ann", jam->ann), named("bob", jam->bob) };
	struct hd_process_info info = { .why = HD_WAIT_NONE };

	for (int i = 0; i < 2; i++) {
		do {
			hd_yield();
			CHECK_EQ(hd_process_info(pids[i], &info), 0);
		} while (info.why != (i == 0 ? HD_WAIT_SEND : jam->waits));
		CHECK_EQ(info.holder, pids[!i]);
	}
	hd_shutdown(0);
	return arg;
}

HD_TEST(circle_through_full_ports_is_reported)
{
	for (unsigned i = 0; i < 2 * sizeof jams / sizeof jams[0]; i++) {
		char bobs[80];
		jam = &jams[i / 2];
		memset(&a, 0, sizeof a);
		snprintf(bobs, sizeof bobs, "bob #2 waits in %s for ann #1, here:", jam->in);
		const char *said = run(close_jam, HD_DEADLOCK_REPORT, 1 + i % 2);
		CHECK_EQ(times_said(said, "a circle of 2 processes"), 1);
		CHECK_EQ(times_said(said, "ann #1 waits in hd_send for bob #2, here:"), 1);
		CHECK_EQ(times_said(said, bobs), 1);
	}
}
