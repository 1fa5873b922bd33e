/* savina.h - what the programs of bench/savina share: their list, random numbers, work, and short names for sending and receiving.
 *
 * Each program is a function that makes its processes, lets them exchange their messages, waits for their end, and checks what came of it.
 * Its parameters are those of the Savina suite, divided by `reduction` where a test asks for less. */
#ifndef BENCH_SAVINA_H
#define BENCH_SAVINA_H

#include <heddle.h>
#include <stdatomic.h>

#include "../harness.h"

/* micro.c */
void ping_pong(void);
void counting(void);
void fork_join_throughput(void);
void fork_join_create(void);
void thread_ring(void);
void chameneos(void);
void big(void);

/* serve.c */
void dictionary(void);
void sorted_list(void);
void bounded_buffer(void);
void logistic_map(void);
void bank(void);

/* classic.c */
void philosophers(void);
void barber(void);
void smokers(void);

extern int reduction;		  /* 1: Savina's parameters */
extern atomic_ulong work_results; /* or a compiler might leave the work out */

static inline long reduced(long n)
{
	return n / reduction > 2 ? n / reduction : 2;
}

/* The next of a sequence of numbers, 1 to 2^31 - 2: the same for every peer, and small integers for Erlang. */
static inline uint64_t next_random(uint64_t x)
{
	return x * 16807 % 2147483647;
}

static inline long random_below(uint64_t *x, long n)
{
	*x = next_random(*x);
	return (long)(*x % (uint64_t)n);
}

/* So many steps of arithmetic, each of which needs the one before. */
static inline void work(long steps)
{
	uint64_t x = 1;

	while (steps-- > 0)
		x = next_random(x);
	atomic_fetch_add_explicit(&work_results, x, memory_order_relaxed); /* never read */
}

static inline hd_port *made(hd_port *port)
{
	if (port == NULL)
		bench_die("hd_port_new", ENOMEM);
	return port;
}

/* A new member of the group, and the port that it receives from: the caller has a reference. */
static inline hd_port *start(struct hd_group *group, hd_entry entry, void *arg)
{
	hd_port *port = made(hd_port_new(&(struct hd_port_options){ .unowned = true }));

	bench_ok(hd_spawn_with(&(struct hd_spawn){ .group = group, .port = port }, entry, arg), "hd_spawn_with");
	return port;
}

/* All members have ended. */
static inline void finish(struct hd_group *group)
{
	bench_ok(hd_group_wait(group, HD_FOREVER), "hd_group_wait");
}

static inline void release_all(hd_port **ports, long count)
{
	for (long i = 0; i < count; i++)
		hd_port_release(ports[i]);
}

/* A message that is a tag. */
static inline void send(hd_port *to, int64_t tag)
{
	bench_ok(hd_send(to, tag, NULL, 0, HD_FOREVER), "hd_send");
}

static inline void send_all(hd_port **to, long count, int64_t tag)
{
	for (long i = 0; i < count; i++)
		send(to[i], tag);
}

/* The next message to the caller, which drops it. */
static inline struct hd_message received(void)
{
	struct hd_message m;

	bench_ok(hd_receive(NULL, &m, HD_FOREVER), "hd_receive");
	return m;
}

static inline int64_t received_tag(void)
{
	struct hd_message m = received();
	int64_t tag = m.tag;

	hd_message_drop(&m);
	return tag;
}

/* Asks, and answers the tag of the answer. */
static inline int64_t ask(hd_port *whom, int64_t tag, const void *data, size_t size)
{
	struct hd_message answer;

	bench_ok(hd_call(whom, tag, data, size, &answer, HD_FOREVER), "hd_call");
	tag = answer.tag;
	hd_message_drop(&answer);
	return tag;
}

/* Answers a call with a tag, and drops it. */
static inline void answer_with(struct hd_message *call, int64_t tag)
{
	bench_ok(hd_reply(call, tag, NULL, 0), "hd_reply");
	hd_message_drop(call);
}

#endif
