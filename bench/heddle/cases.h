/* cases.h - the bench cases of heddle, by the file that has them. */
#ifndef BENCH_HEDDLE_CASES_H
#define BENCH_HEDDLE_CASES_H

#include <heddle.h>

/* switch.c */
void yield2(void);
void yield1000(void);
void pingpong(void);
void ring1000(void);
void pingpong_mixed(void);
void ring1000_mixed(void);

/* spawn.c */
void spawn_join(void);
void spawn_1m(void);
void skynet(void);

/* load.c */
void fanout(void);
void mixed_load(void); /* no case: what some of them run first */

/* sync.c */
void mutex2(void);
void mutex2_barging(void);
void mutex1000(void);
void mutex1000_barging(void);
void queue_1x1(void);
void queue_4x4(void);
void queue_100x100(void);
void condition(void);
void promise(void);
void select8(void);

/* machine.c */
void machine_life(void);
void machine_turn(void);
void machines_1m(void);

/* when.c */
void when_1(void);
void when_2(void);
void when_1_many(void);
void when_2_many(void);
void when_shares(void);

/* cowns.c */
void when_bank(void);
void when_store(void);
void when_log(void);
void shape_bank(void);
void shape_philosophers(void);
void shape_philosophers_in_order(void);

/* port.c */
void port_pingpong(void);
void port_pingpong_16(void);
void port_send(void);
void port_bounded(void);

/* shapes.c */
void shape_work(void);
void shape_pool(void);
void shape_jobs(void);
void shape_pipeline(void);
void shape_monitor(void);
void shape_mutex(void);
void shape_rwlock(void);
void shape_sleepers(void);
void shape_promise(void);
void shape_sort(void);

/* latency.c */
void mutex_starve(void);
void ticker_loop(void);
void ticker_usleep(void);

/* many.c */
void blocked_1m(void);
void sleepers_1m(void);

/* count.c: exactly n operations, nothing measured. */
void count_yield(long n);
void count_semaphore_hop(long n);
void count_spawn_join(long n);
void count_mutex_pair(long n);
void count_queue_pair(long n);
void count_send_pair(long n);
void count_call(long n);
void count_machine_life(long n);
void count_machine_turn(long n);
void count_when_1(long n);
void count_when_2(long n);

/* counters.c */
void run_uncounted(void (*run)(void));
void print_counters(void);

#endif
