/* micro.c - Savina's micro programs: what messages and processes cost. */
#include "savina.h"

/* ---- ping-pong: a process calls another one, again and again ---- */

static long served; /* by the process that answers; read when it has ended */

static void *answers_pings(void *arg)
{
	enum { STOP = 1 };

	for (served = 0;; served++) {
		struct hd_message m = received();
		if (m.tag == STOP)
			return arg;
		answer_with(&m, 0);
	}
}

void ping_pong(void)
{
	struct hd_group group = { 0 };
	hd_port *port = start(&group, answers_pings, NULL);
	long n = reduced(40000);

	for (long i = 0; i < n; i++)
		ask(port, 0, NULL, 0);
	send(port, 1);
	finish(&group);
	hd_port_release(port);
	bench_same("pings", served, n);
}

/* ---- counting: a process sends a million messages to another one, which counts them ---- */

enum { ADD, TOTAL };

static void *counts(void *arg)
{
	for (int64_t n = 0;; n++) {
		struct hd_message m = received();
		if (m.tag == TOTAL) {
			answer_with(&m, n);
			return arg;
		}
	}
}

void counting(void)
{
	struct hd_group group = { 0 };
	hd_port *port = start(&group, counts, NULL);
	long n = reduced(1000000);

	for (long i = 0; i < n; i++)
		send(port, ADD);
	bench_same("count", ask(port, TOTAL, NULL, 0), n);
	finish(&group);
	hd_port_release(port);
}

/* ---- fork-join, throughput: messages to each of 60 processes in turn ---- */

enum { JOINED = 60 };
static long handled[JOINED];
static long rounds;

static void *handles(void *arg)
{
	long *count = arg;

	for (*count = 0; *count < rounds; (*count)++) {
		work(1);
		bench_same("message in order", received_tag(), *count);
	}
	return NULL;
}

void fork_join_throughput(void)
{
	struct hd_group group = { 0 };
	hd_port *ports[JOINED];

	rounds = reduced(10000);
	for (int i = 0; i < JOINED; i++)
		ports[i] = start(&group, handles, &handled[i]);
	for (long k = 0; k < rounds; k++)
		send_all(ports, JOINED, k);
	finish(&group);
	release_all(ports, JOINED);
	for (int i = 0; i < JOINED; i++)
		bench_same("messages handled", handled[i], rounds);
}

/* ---- fork-join, create: many processes, one message to each, one from each ---- */

static void *squares(void *home)
{
	int64_t n = received_tag();

	send(home, n * n);
	return NULL;
}

void fork_join_create(void)
{
	struct hd_group group = { 0 };
	hd_port *home = made(hd_port_new(NULL));
	int64_t n = reduced(40000), sum = 0, should = 0;

	for (int64_t i = 1; i <= n; i++) {
		hd_port *port = start(&group, squares, home);
		send(port, i);
		hd_port_release(port);
		should += i * i;
	}
	for (int64_t i = 0; i < n; i++)
		sum += received_tag();
	finish(&group);
	hd_port_release(home);
	bench_same("sum of squares", sum, should);
}

/* ---- thread ring: a token goes round 100 processes; its tag is how many hops are left ---- */

enum { RING = 100, RING_STOPS = 0, LAST_HOP = 1 };

struct member {
	hd_port *next, *home;
	int number;
	struct hd_semaphore linked;
};

static void *passes_on(void *arg)
{
	struct member *me = arg;

	bench_ok(hd_semaphore_wait(&me->linked, HD_FOREVER), "hd_semaphore_wait");
	for (;;) {
		int64_t hops = received_tag();
		if (hops == RING_STOPS)
			return NULL;
		if (hops == LAST_HOP)
			send(me->home, me->number);
		else
			send(me->next, hops - 1);
	}
}

void thread_ring(void)
{
	struct hd_group group = { 0 };
	struct member members[RING] = { 0 };
	hd_port *ports[RING], *home = made(hd_port_new(NULL));
	long hops = reduced(100000);

	for (int i = 0; i < RING; i++)
		ports[i] = start(&group, passes_on, &members[i]);
	for (int i = 0; i < RING; i++) {
		members[i].next = ports[(i + 1) % RING];
		members[i].home = home;
		members[i].number = i;
		hd_semaphore_signal(&members[i].linked);
	}
	send(ports[0], hops);
	bench_same("where the token stopped", received_tag(), (hops - 1) % RING);
	send_all(ports, RING, RING_STOPS);
	finish(&group);
	release_all(ports, RING);
	hd_port_release(home);
}

/* ---- chameneos: creatures meet in pairs and change their colours. The mall brings the second of a pair to the first: it answers the first
 * one's call with the colour of the second and with the port where that one waits for its own answer. ---- */

enum { CREATURES = 100, COLOURS = 3, FADED = COLOURS };

struct mall {
	hd_port *port, *home;
	int64_t meetings;
};

static void *mall(void *arg)
{
	struct mall *mall = arg;
	struct hd_message first = { 0 };

	for (int creatures = CREATURES; creatures > 0;) {
		struct hd_message m = received();
		if (mall->meetings == 0) {
			answer_with(&m, FADED);
			creatures--;
		} else if (first.carried == NULL) {
			first = m;
		} else {
			struct hd_sending second = { .tag = m.tag, .carried = m.carried };
			bench_ok(hd_send_with(first.carried, &second, HD_FOREVER), "hd_send_with");
			hd_message_drop(&first);
			hd_message_drop(&m);
			mall->meetings--;
		}
	}
	return NULL;
}

struct creature {
	struct mall *mall;
	int64_t colour;
};

static int64_t complement(int64_t mine, int64_t other)
{
	return mine == other ? mine : COLOURS - mine - other;
}

static void *creature(void *arg)
{
	struct creature *me = arg;
	int64_t meetings = 0;

	for (;; meetings++) {
		struct hd_message other;
		bench_ok(hd_call(me->mall->port, me->colour, NULL, 0, &other, HD_FOREVER), "hd_call");
		if (other.tag == FADED)
			break;
		if (other.carried != NULL)
			send(other.carried, me->colour);
		me->colour = complement(me->colour, other.tag);
		hd_message_drop(&other);
	}
	send(me->mall->home, meetings);
	return NULL;
}

void chameneos(void)
{
	struct hd_group group = { 0 };
	struct creature creatures[CREATURES];
	struct mall place = { .home = made(hd_port_new(NULL)), .meetings = reduced(200000) };
	int64_t should = 2 * place.meetings, met = 0;

	place.port = start(&group, mall, &place);
	for (int i = 0; i < CREATURES; i++) {
		creatures[i] = (struct creature){ &place, i % COLOURS };
		bench_ok(hd_group_spawn(&group, creature, &creatures[i]), "hd_group_spawn");
	}
	for (int i = 0; i < CREATURES; i++)
		met += received_tag();
	finish(&group);
	hd_port_release(place.port);
	hd_port_release(place.home);
	bench_same("meetings", met, should);
}

/* ---- big: every process pings others, chosen at random, and answers the pings that come meanwhile. A ping's tag is the number of the
 * process that sent it. ---- */

enum { PROCESSES = 120, PONG = PROCESSES, BIG_STOPS };

static hd_port *all[PROCESSES], *sink;
static struct hd_event ready;
static long pings, answered[PROCESSES];

/* Whether the caller goes on. */
static bool next_message(int me, bool *pong)
{
	int64_t tag = received_tag();

	*pong = tag == PONG;
	if (tag < PROCESSES) {
		send(all[tag], PONG);
		answered[me]++;
	}
	return tag != BIG_STOPS;
}

static void *pings_others(void *arg)
{
	int me = (int)(intptr_t)arg;
	uint64_t x = (uint64_t)me + 1;
	bool pong;

	answered[me] = 0;
	bench_ok(hd_event_wait(&ready, HD_FOREVER), "hd_event_wait");
	for (long i = 0; i < pings; i++) {
		long other = random_below(&x, PROCESSES - 1);
		send(all[other < me ? other : other + 1], me);
		do
			if (!next_message(me, &pong))
				bench_die("stopped too early", EINVAL);
		while (!pong);
	}
	send(sink, me);
	while (next_message(me, &pong))
		;
	return NULL;
}

void big(void)
{
	struct hd_group group = { 0 };
	long sum = 0;

	pings = reduced(20000);
	sink = made(hd_port_new(NULL));
	ready = (struct hd_event){ 0 };
	for (int i = 0; i < PROCESSES; i++)
		all[i] = start(&group, pings_others, (void *)(intptr_t)i);
	hd_event_set(&ready);
	for (int i = 0; i < PROCESSES; i++)
		received_tag();
	send_all(all, PROCESSES, BIG_STOPS);
	finish(&group);
	release_all(all, PROCESSES);
	hd_port_release(sink);
	for (int i = 0; i < PROCESSES; i++)
		sum += answered[i];
	bench_same("pings answered", sum, PROCESSES * pings);
}
