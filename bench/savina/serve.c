/* serve.c - Savina's programs in which many processes call one that has the data, and chains of calls. */
#include <math.h>

#include "savina.h"

enum { CLIENTS = 20, PERCENT = 100 };

/* ---- concurrent dictionary: clients read and write; what is written to a key follows from the key ---- */

enum { KEYS = 524287, SLOTS = 1 << 16, WRITE_PERCENT = 10, STOPS = 0 };
enum { READ = 1, WRITE, SIZE };

struct entry {
	int64_t key, value;
};

static struct entry *slot_of(struct entry *table, int64_t key)
{
	uint64_t at = (uint64_t)key * 2654435761u % SLOTS;

	while (table[at].key != 0 && table[at].key != key)
		at = (at + 1) % SLOTS;
	return &table[at];
}

static void *serves_dictionary(void *arg)
{
	struct entry *table = calloc(SLOTS, sizeof *table), *slot;
	int64_t size = 0;

	if (table == NULL)
		bench_die("calloc", ENOMEM);
	for (;;) {
		struct hd_message m = received();
		struct entry *asked = m.data;
		switch (m.tag) {
		case READ:
			answer_with(&m, slot_of(table, asked->key)->value);
			break;
		case WRITE:
			slot = slot_of(table, asked->key);
			size += slot->key == 0;
			*slot = *asked;
			answer_with(&m, asked->value);
			break;
		case SIZE:
			answer_with(&m, size);
			break;
		default:
			free(table);
			return arg;
		}
	}
}

struct client {
	hd_port *server;
	uint64_t seed;
};
static long requests; /* of each client */

static void *uses_dictionary(void *arg)
{
	struct client *me = arg;
	uint64_t x = me->seed;

	for (long i = 0; i < requests; i++) {
		bool write = random_below(&x, PERCENT) < WRITE_PERCENT;
		int64_t key = 1 + random_below(&x, KEYS);
		struct entry e = { key, 3 * key };
		int64_t value = ask(me->server, write ? WRITE : READ, &e, sizeof e);
		bench_same("value", write || value != 0 ? value : 3 * key, 3 * key);
	}
	return NULL;
}

/* Runs the clients of a server until they have ended. Answers how much the server has then; it ends. */
static int64_t serve(hd_entry server, hd_entry client)
{
	struct hd_group servers = { 0 }, group = { 0 };
	struct client clients[CLIENTS];
	hd_port *port = start(&servers, server, NULL);

	for (int i = 0; i < CLIENTS; i++) {
		clients[i] = (struct client){ port, (uint64_t)i + 1 };
		bench_ok(hd_group_spawn(&group, client, &clients[i]), "hd_group_spawn");
	}
	finish(&group);
	int64_t size = ask(port, SIZE, NULL, 0);
	send(port, STOPS);
	finish(&servers);
	hd_port_release(port);
	return size;
}

void dictionary(void)
{
	unsigned char *seen = calloc(KEYS + 1, 1);
	int64_t distinct = 0;

	if (seen == NULL)
		bench_die("calloc", ENOMEM);
	requests = reduced(10000);
	int64_t size = serve(serves_dictionary, uses_dictionary);
	for (uint64_t seed = 1; seed <= CLIENTS; seed++) {
		uint64_t x = seed;
		for (long i = 0; i < requests; i++) {
			bool write = random_below(&x, PERCENT) < WRITE_PERCENT;
			long key = 1 + random_below(&x, KEYS);
			distinct += write && !seen[key];
			seen[key] |= write;
		}
	}
	free(seen);
	bench_same("keys", size, distinct);
}

/* ---- concurrent sorted list: clients look for numbers, add them, and ask how many there are ---- */

enum { NUMBERS = 1024, SIZE_PERCENT = 1, ADD_PERCENT = 10 };
enum { CONTAINS = 1, ADD_NUMBER = 2 }; /* and SIZE */

struct node {
	int64_t number;
	struct node *next;
};

/* What points to the first node that is not below the number. */
static struct node **place_of(struct node **list, int64_t number)
{
	while (*list != NULL && (*list)->number < number)
		list = &(*list)->next;
	return list;
}

/* Whether the number was new. */
static bool add_number(struct node **list, int64_t number)
{
	struct node **place = place_of(list, number), *node;

	if (*place != NULL && (*place)->number == number)
		return false;
	node = malloc(sizeof *node);
	if (node == NULL)
		bench_die("malloc", ENOMEM);
	*node = (struct node){ number, *place };
	*place = node;
	return true;
}

static void free_list(struct node *list)
{
	while (list != NULL) {
		struct node *next = list->next;
		free(list);
		list = next;
	}
}

static void *serves_list(void *arg)
{
	struct node *list = NULL;
	int64_t size = 0;

	for (;;) {
		struct hd_message m = received();
		int64_t number = m.size > 0 ? *(int64_t *)m.data : 0;
		switch (m.tag) {
		case CONTAINS: {
			struct node *node = *place_of(&list, number);
			answer_with(&m, node != NULL && node->number == number);
			break;
		}
		case ADD_NUMBER:
			size += add_number(&list, number);
			answer_with(&m, 1);
			break;
		case SIZE:
			answer_with(&m, size);
			break;
		default:
			free_list(list);
			return arg;
		}
	}
}

static int64_t list_request(uint64_t *x, int64_t *number)
{
	long chance = random_below(x, PERCENT);

	*number = random_below(x, NUMBERS);
	return chance < SIZE_PERCENT ? SIZE : chance < SIZE_PERCENT + ADD_PERCENT ? ADD_NUMBER : CONTAINS;
}

static void *uses_list(void *arg)
{
	struct client *me = arg;
	uint64_t x = me->seed;
	int64_t number, size = 0;

	for (long i = 0; i < requests; i++) {
		int64_t tag = list_request(&x, &number), answer = ask(me->server, tag, &number, sizeof number);
		bool fits = tag == SIZE ? answer >= size && answer <= NUMBERS : tag == ADD_NUMBER ? answer == 1 : answer <= 1;
		bench_same("answer", fits, true);
		if (tag == SIZE)
			size = answer; /* it never shrinks */
	}
	return NULL;
}

void sorted_list(void)
{
	bool seen[NUMBERS] = { false };
	int64_t distinct = 0, number;

	requests = reduced(8000);
	int64_t size = serve(serves_list, uses_list);
	for (uint64_t seed = 1; seed <= CLIENTS; seed++) {
		uint64_t x = seed;
		for (long i = 0; i < requests; i++)
			if (list_request(&x, &number) == ADD_NUMBER) {
				distinct += !seen[number];
				seen[number] = true;
			}
	}
	bench_same("numbers", size, distinct);
}

/* ---- bounded buffer: a process has the buffer; who puts into a full one, or takes from an empty one, hears of it later ---- */

enum { CAPACITY = 50, SIDES = 40, ITEM_STEPS = 250, PUT = 1, TAKE = 2 };

struct calls {
	struct hd_message waiting[SIDES];
	int first, count;
};

static void keep(struct calls *c, struct hd_message *m)
{
	c->waiting[(c->first + c->count++) % SIDES] = *m;
}

static struct hd_message *oldest(struct calls *c)
{
	struct hd_message *m = &c->waiting[c->first];

	c->first = (c->first + 1) % SIDES;
	c->count--;
	return m;
}

struct buffer {
	int64_t items[CAPACITY];
	int first, count;
	struct calls puts, takes;
};

static void put(struct buffer *b, struct hd_message *m)
{
	int64_t item = *(int64_t *)m->data;

	if (b->takes.count > 0)
		answer_with(oldest(&b->takes), item);
	else
		b->items[(b->first + b->count++) % CAPACITY] = item;
	answer_with(m, 0);
}

static void take(struct buffer *b, struct hd_message *m)
{
	int64_t item = b->items[b->first];

	b->first = (b->first + 1) % CAPACITY;
	b->count--;
	if (b->puts.count > 0)
		put(b, oldest(&b->puts));
	answer_with(m, item);
}

static void *serves_buffer(void *arg)
{
	struct buffer b = { .first = 0 };

	for (;;) {
		struct hd_message m = received();
		if (m.tag == STOPS)
			return arg;
		if (m.tag == PUT && b.count == CAPACITY)
			keep(&b.puts, &m);
		else if (m.tag == PUT)
			put(&b, &m);
		else if (b.count == 0)
			keep(&b.takes, &m);
		else
			take(&b, &m);
	}
}

static long items; /* of each producer */
static atomic_llong taken;

static void *produces(void *port)
{
	for (int64_t i = 1; i <= items; i++) {
		work(ITEM_STEPS);
		ask(port, PUT, &i, sizeof i);
	}
	return NULL;
}

static void *consumes(void *port)
{
	int64_t sum = 0;

	for (long i = 0; i < items; i++) {
		sum += ask(port, TAKE, NULL, 0);
		work(ITEM_STEPS);
	}
	atomic_fetch_add_explicit(&taken, sum, memory_order_relaxed); /* only counted */
	return NULL;
}

void bounded_buffer(void)
{
	struct hd_group servers = { 0 }, group = { 0 };
	hd_port *port = start(&servers, serves_buffer, NULL);

	items = reduced(1000);
	atomic_store_explicit(&taken, 0, memory_order_relaxed);
	for (int i = 0; i < SIDES; i++) {
		bench_ok(hd_group_spawn(&group, produces, port), "hd_group_spawn");
		bench_ok(hd_group_spawn(&group, consumes, port), "hd_group_spawn");
	}
	finish(&group);
	send(port, STOPS);
	finish(&servers);
	hd_port_release(port);
	bench_same("sum of the items", atomic_load_explicit(&taken, memory_order_relaxed), SIDES * bench_sum(items));
}

/* ---- logistic map: each of ten series has a process that asks another one for its next term ---- */

enum { SERIES = 10, NEXT = 1, GET = 2 };

static const double first_rate = 3.46, increment = 0.0025;

struct series {
	double rate, term;
	hd_port *computer;
};

static double next_term(double term, double rate)
{
	return rate * term * (1 - term);
}

static void *computes(void *arg)
{
	struct series *s = arg;

	for (;;) {
		struct hd_message m = received();
		if (m.tag == STOPS)
			return NULL;
		double term = next_term(*(double *)m.data, s->rate);
		bench_ok(hd_reply(&m, NEXT, &term, sizeof term), "hd_reply");
		hd_message_drop(&m);
	}
}

static void *is_series(void *arg)
{
	struct series *s = arg;
	double term = s->term;

	for (;;) {
		struct hd_message m = received(), answer;
		if (m.tag == STOPS)
			return NULL;
		if (m.tag == GET) {
			bench_ok(hd_reply(&m, GET, &term, sizeof term), "hd_reply");
		} else {
			bench_ok(hd_call(s->computer, NEXT, &term, sizeof term, &answer, HD_FOREVER), "hd_call");
			term = *(double *)answer.data;
			hd_message_drop(&answer);
		}
		hd_message_drop(&m);
	}
}

void logistic_map(void)
{
	struct hd_group group = { 0 };
	struct series series[SERIES];
	hd_port *ports[SERIES];
	long terms = reduced(25000);

	for (int i = 0; i < SERIES; i++) {
		series[i] = (struct series){ first_rate + i * increment, (i + 1) * increment, NULL };
		series[i].computer = start(&group, computes, &series[i]);
		ports[i] = start(&group, is_series, &series[i]);
	}
	for (long k = 0; k < terms; k++)
		send_all(ports, SERIES, NEXT);
	for (int i = 0; i < SERIES; i++) {
		struct hd_message answer;
		double term = series[i].term;
		bench_ok(hd_call(ports[i], GET, NULL, 0, &answer, HD_FOREVER), "hd_call");
		for (long k = 0; k < terms; k++)
			term = next_term(term, series[i].rate);
		bench_same("term", fabs(*(double *)answer.data - term) < 1e-9, true);
		hd_message_drop(&answer);
		send(ports[i], STOPS);
		send(series[i].computer, STOPS);
	}
	finish(&group);
	release_all(ports, SERIES);
	for (int i = 0; i < SERIES; i++)
		hd_port_release(series[i].computer);
}

/* ---- bank transaction: an account that is told to transfer takes the money off, calls the other account, and reports to the teller ---- */

enum { ACCOUNTS = 1000, TRANSFER = 1, DEPOSIT, BALANCE };

struct transfer {
	int64_t to, amount;
};
static hd_port *accounts[ACCOUNTS], *teller;

static void *account(void *arg)
{
	int64_t balance = 0;

	for (;;) {
		struct hd_message m = received();
		const struct transfer *t = m.data;
		switch (m.tag) {
		case TRANSFER:
			balance -= t->amount;
			ask(accounts[t->to], DEPOSIT, t, sizeof *t);
			send(teller, TRANSFER);
			hd_message_drop(&m);
			break;
		case DEPOSIT:
			balance += t->amount;
			answer_with(&m, DEPOSIT);
			break;
		case BALANCE:
			bench_ok(hd_reply(&m, BALANCE, &balance, sizeof balance), "hd_reply");
			hd_message_drop(&m);
			break;
		default:
			return arg;
		}
	}
}

/* The accounts wait for each other only upwards: there is no circle. */
static struct transfer next_transfer(uint64_t *x, long *from)
{
	*from = random_below(x, ACCOUNTS - 1);
	int64_t to = *from + 1 + random_below(x, ACCOUNTS - 1 - *from);
	return (struct transfer){ to, 1 + random_below(x, 1000) };
}

void bank(void)
{
	struct hd_group group = { 0 };
	static int64_t should[ACCOUNTS];
	long n = reduced(50000), from;
	uint64_t x = 1;

	memset(should, 0, sizeof should);
	teller = made(hd_port_new(NULL));
	for (int i = 0; i < ACCOUNTS; i++)
		accounts[i] = start(&group, account, NULL);
	for (long i = 0; i < n; i++) {
		struct transfer t = next_transfer(&x, &from);
		bench_ok(hd_send(accounts[from], TRANSFER, &t, sizeof t, HD_FOREVER), "hd_send");
		should[from] -= t.amount;
		should[t.to] += t.amount;
	}
	for (long i = 0; i < n; i++)
		received_tag();
	for (int i = 0; i < ACCOUNTS; i++) {
		struct hd_message m;
		bench_ok(hd_call(accounts[i], BALANCE, NULL, 0, &m, HD_FOREVER), "hd_call");
		bench_same("balance", *(int64_t *)m.data, should[i]);
		hd_message_drop(&m);
		send(accounts[i], STOPS);
	}
	finish(&group);
	release_all(accounts, ACCOUNTS);
	hd_port_release(teller);
}
