/* classic.c - Savina's dining philosophers, sleeping barber and cigarette smokers. */
#include "savina.h"

/* ---- dining philosophers: an arbiter gives out the forks. A philosopher whose forks are not free hears of it when they are. ---- */

enum { TABLE = 20, STOPS = 0, HUNGRY = 1, DONE = HUNGRY + TABLE }; /* and the number of the philosopher */

static long meals; /* of each philosopher */
static int fork_used_by[TABLE];

struct table {
	bool taken[TABLE];
	struct hd_message waits[TABLE]; /* the call of a philosopher that waits; without a port: none */
};

static int right_of(int i)
{
	return (i + 1) % TABLE;
}

static void try_to_serve(struct table *t, int i)
{
	if (t->waits[i].carried == NULL || t->taken[i] || t->taken[right_of(i)])
		return;
	t->taken[i] = t->taken[right_of(i)] = true;
	answer_with(&t->waits[i], 0);
}

static void *arbiter(void *arg)
{
	struct table t = { .taken = { false } };

	for (;;) {
		struct hd_message m = received();
		if (m.tag == STOPS)
			return arg;
		if (m.tag < DONE) {
			int i = (int)(m.tag - HUNGRY);
			t.waits[i] = m;
			try_to_serve(&t, i);
			continue;
		}
		int i = (int)(m.tag - DONE);
		t.taken[i] = t.taken[right_of(i)] = false;
		try_to_serve(&t, (i + TABLE - 1) % TABLE);
		try_to_serve(&t, right_of(i));
	}
}

struct philosopher {
	hd_port *arbiter;
	int number;
	long eaten;
};

static void use_fork(int fork, int from, int to)
{
	bench_same("fork", fork_used_by[fork], from);
	fork_used_by[fork] = to;
}

static void *philosopher(void *arg)
{
	struct philosopher *me = arg;
	int left = me->number, right = right_of(left), mark = left + 1;

	for (; me->eaten < meals; me->eaten++) {
		ask(me->arbiter, HUNGRY + left, NULL, 0);
		use_fork(left, 0, mark);
		use_fork(right, 0, mark);
		use_fork(left, mark, 0);
		use_fork(right, mark, 0);
		send(me->arbiter, DONE + left);
	}
	return NULL;
}

void philosophers(void)
{
	struct hd_group arbiters = { 0 }, group = { 0 };
	struct philosopher all[TABLE];
	hd_port *port = start(&arbiters, arbiter, NULL);

	meals = reduced(10000);
	for (int i = 0; i < TABLE; i++) {
		all[i] = (struct philosopher){ port, i, 0 };
		bench_ok(hd_group_spawn(&group, philosopher, &all[i]), "hd_group_spawn");
	}
	finish(&group);
	send(port, STOPS);
	finish(&arbiters);
	hd_port_release(port);
	for (int i = 0; i < TABLE; i++)
		bench_same("meals", all[i].eaten, meals);
}

/* ---- sleeping barber: customers call the waiting room, which passes them on to the barber, who answers when the hair is cut. One that finds no
 * seat goes back to the factory, which sends it again when there are fewer on the way than seats. ---- */

enum { SEATS = 1000, MOST_STEPS = 1000, LEAST_STEPS = 10 };
enum { ENTER = 1, NEXT, FULL, CUT, AGAIN, SERVED };

struct shop {
	hd_port *room, *barber, *factory;
};

static void *waiting_room(void *arg)
{
	struct shop *shop = arg;
	static struct hd_message seats[SEATS];
	int first = 0, count = 0;
	bool barber_sleeps = true;

	for (;;) {
		struct hd_message m = received();
		if (m.tag == STOPS)
			return NULL;
		if (m.tag == NEXT) {
			barber_sleeps = true;
		} else if (count == SEATS) {
			answer_with(&m, FULL);
			continue;
		} else {
			seats[(first + count++) % SEATS] = m;
		}
		if (barber_sleeps && count > 0) {
			struct hd_message *customer = &seats[first];
			struct hd_sending passed_on = { .tag = ENTER, .carried = customer->carried };
			bench_ok(hd_send_with(shop->barber, &passed_on, HD_FOREVER), "hd_send_with");
			hd_message_drop(customer);
			first = (first + 1) % SEATS;
			count--;
			barber_sleeps = false;
		}
	}
}

static void *cuts_hair(void *arg)
{
	struct shop *shop = arg;
	uint64_t x = 2;

	for (;;) {
		struct hd_message m = received();
		if (m.tag == STOPS)
			return NULL;
		work(LEAST_STEPS + random_below(&x, MOST_STEPS));
		answer_with(&m, CUT);
		send(shop->room, NEXT);
	}
}

static void *customer(void *arg)
{
	struct shop *shop = arg;

	while (ask(shop->room, ENTER, NULL, 0) == FULL)
		ask(shop->factory, AGAIN, NULL, 0);
	send(shop->factory, SERVED);
	return NULL;
}

void barber(void)
{
	struct hd_group servers = { 0 }, group = { 0 };
	struct shop shop = { .factory = made(hd_port_new(NULL)) };
	long customers = reduced(5000), served = 0, away = 0;
	struct hd_message *back = bench_array((size_t)customers, sizeof *back);
	uint64_t x = 1;

	shop.room = made(hd_port_new(&(struct hd_port_options){ .unowned = true }));
	shop.barber = start(&servers, cuts_hair, &shop);
	bench_ok(hd_spawn_with(&(struct hd_spawn){ .group = &servers, .port = shop.room }, waiting_room, &shop),
		 "hd_spawn_with");
	for (long i = 0; i < customers; i++) {
		bench_ok(hd_group_spawn(&group, customer, &shop), "hd_group_spawn");
		work(LEAST_STEPS + random_below(&x, MOST_STEPS));
	}
	while (served < customers) {
		struct hd_message m = received();
		if (m.tag == AGAIN)
			back[away++] = m;
		else
			served++;
		if (away > 0 && customers - served - away < SEATS)
			answer_with(&back[--away], AGAIN);
	}
	finish(&group);
	bench_same("customers that did not come again", away, 0);
	send(shop.room, STOPS);
	send(shop.barber, STOPS);
	finish(&servers);
	hd_port_release(shop.room);
	hd_port_release(shop.barber);
	hd_port_release(shop.factory);
	free(back);
}

/* ---- cigarette smokers: the arbiter gives a smoker, chosen at random, what it needs, and goes on when that one has begun to smoke ---- */

enum { SMOKERS = 200 };

static void *smokes(void *arg)
{
	long *smoked = arg;

	for (;; (*smoked)++) {
		struct hd_message m = received();
		if (m.tag == STOPS)
			return NULL;
		long steps = (long)m.tag;
		answer_with(&m, 0);
		work(steps);
	}
}

void smokers(void)
{
	struct hd_group group = { 0 };
	hd_port *ports[SMOKERS];
	long smoked[SMOKERS] = { 0 }, should[SMOKERS] = { 0 }, rounds = reduced(1000);
	uint64_t x = 1;

	for (int i = 0; i < SMOKERS; i++)
		ports[i] = start(&group, smokes, &smoked[i]);
	for (long i = 0; i < rounds; i++) {
		long chosen = random_below(&x, SMOKERS);
		should[chosen]++;
		ask(ports[chosen], LEAST_STEPS + random_below(&x, MOST_STEPS), NULL, 0);
	}
	send_all(ports, SMOKERS, STOPS);
	finish(&group);
	release_all(ports, SMOKERS);
	for (int i = 0; i < SMOKERS; i++)
		bench_same("smoked", smoked[i], should[i]);
}
