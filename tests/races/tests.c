/* races/tests.c - the races as tests: each primitive with every pair of events. */
#include <heddle.h>

#include "harness/harness.h"
#include "races/races.h"

static size_t primitive;

static void *all_pairs(void *arg)
{
	static const int delays[] = { 1, 20, 300 };

	for (enum event a = GRANT; a < EVENTS; a++)
		for (enum event b = a + 1; b < EVENTS; b++)
			if (can_happen(primitive, a) && can_happen(primitive, b))
				for (int i = 0; i < (b == TIMEOUT || a == TIMEOUT ? 3 : 1); i++)
					race(primitive, a, b, delays[i]);
	return arg;
}

static void run(size_t which)
{
	for (unsigned workers = 1; workers <= 2; workers++) {
		const struct hd_config config = { .workers = workers, .fixed = true };
		primitive = which;
		CHECK_EQ(hd_run(&config, all_pairs, NULL), 0);
	}
}

#define RACES(name, which)                                                                                                     \
	HD_TEST(races_on_a_##name##_lose_nothing)                                                                              \
	{                                                                                                                      \
		run(which);                                                                                                    \
	}

RACES(semaphore, 0)
RACES(critical_section, 1)
RACES(mutex, 2)
RACES(barging_mutex, 3)
RACES(mutex_by_priority, 4)
RACES(inheriting_mutex, 5)
RACES(monitor, 6)
RACES(barging_monitor, 7)
RACES(rwlock, 8)
RACES(rwlock_for_readers, 9)
RACES(rwlock_for_writers, 10)
RACES(barrier, 11)
RACES(once, 12)
RACES(event, 13)
RACES(auto_event, 14)
RACES(wait_group, 15)
RACES(promise, 16)
RACES(queue_to_take, 17)
RACES(queue_to_put, 18)
RACES(ordered_queue_to_take, 19)
RACES(ordered_queue_to_put, 20)
RACES(rendezvous_to_take, 21)
RACES(rendezvous_to_put, 22)
RACES(select_at_a_rendezvous, 23)
RACES(select, 24)
RACES(join, 25)
RACES(group, 26)
RACES(receive, 27)
RACES(selective_receive, 28)
RACES(select_of_a_port, 29)
RACES(send, 30)
RACES(dropped_call, 31)
RACES(call_whose_holder_ends, 32)
RACES(call_passed_on, 33)
RACES(receive_of_a_last_message, 34)
RACES(call_whose_port_is_released, 35)
RACES(call_whose_owner_ends, 36)
RACES(call_to_a_full_port, 37)
RACES(displaced_call, 38)
RACES(timer, 39)
