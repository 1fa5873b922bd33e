/* cowns.c - shapes of programs whose items need two things at once: a bank, and philosophers at a table. */
#include <heddle/when.h>

#include "../harness.h"
#include "cases.h"

static hd_cown *new_cown(void *data)
{
	hd_cown *cown = hd_cown_new(data, NULL);
	if (cown == NULL)
		bench_die("hd_cown_new", ENOMEM);
	return cown;
}

static void quiesce(void)
{
	bench_ok(hd_quiesce(HD_FOREVER), "hd_quiesce");
}

/* ---- a bank ---- */

struct account {
	_Alignas(64) long balance;
	uint64_t result; /* of the work in its transfers, so that no compiler leaves it out */
	hd_cown *cown;
	long should; /* the balance at the end */
};

struct transfer {
	long amount;
	int us;
};

static struct account accounts[BENCH_ACCOUNTS];

static void transfer(void *arg, void *const data[])
{
	const struct transfer *t = arg;
	struct account *from = data[0], *to = data[1];

	if (t->us > 0)
		from->result = bench_work(from->result + to->result, t->us);
	from->balance -= t->amount;
	to->balance += t->amount;
}

/* The next transfer, drawn by chance: its accounts, and the amount. */
static long draw(uint64_t *dice, struct account **from, struct account **to)
{
	*dice = bench_step(*dice);
	unsigned one = (unsigned)(*dice >> 33) % BENCH_ACCOUNTS, step = 1 + (unsigned)(*dice >> 45) % (BENCH_ACCOUNTS - 1);

	*from = &accounts[one];
	*to = &accounts[(one + step) % BENCH_ACCOUNTS];
	return (long)(*dice >> 58);
}

static double time_bank(long n, int us)
{
	struct account *from, *to;
	uint64_t dice = 1;

	for (int i = 0; i < BENCH_ACCOUNTS; i++) {
		accounts[i].balance = accounts[i].should = 0;
		accounts[i].cown = new_cown(&accounts[i]);
	}
	double start = bench_now();
	for (long i = 1; i <= n; i++) {
		struct transfer t = { .amount = draw(&dice, &from, &to), .us = us };
		bench_ok(hd_when_args(transfer, &t, sizeof t, NULL, from->cown, to->cown), "hd_when_args");
		if (i % BENCH_AHEAD == 0)
			quiesce();
	}
	quiesce();
	double took = bench_now() - start;

	dice = 1;
	for (long i = 0; i < n; i++) {
		long amount = draw(&dice, &from, &to);
		from->should -= amount;
		to->should += amount;
	}
	for (int i = 0; i < BENCH_ACCOUNTS; i++) {
		hd_cown_release(accounts[i].cown);
		bench_same("bank: a balance is wrong", accounts[i].balance, accounts[i].should);
	}
	return took;
}

static double time_transfers(long n)
{
	return time_bank(n, 0);
}

static double run_bank(long n)
{
	return time_bank(n, BENCH_TRANSFER_US);
}

/* ---- a store that replays a log ---- */

static double chances[BENCH_ACCOUNTS]; /* by Zipf's law: that a key up to this one is drawn */

static void set_chances(void)
{
	double sum = 0;

	for (int i = 0; i < BENCH_ACCOUNTS; i++)
		chances[i] = sum += 1.0 / (i + 1);
	for (int i = 0; i < BENCH_ACCOUNTS; i++)
		chances[i] /= sum;
}

static hd_cown *draw_key(uint64_t *dice)
{
	double x = (double)((*dice = bench_step(*dice)) >> 33) / 2147483648.0;
	int low = 0, high = BENCH_ACCOUNTS - 1;

	while (low < high) {
		int middle = (low + high) / 2;
		if (chances[middle] < x)
			low = middle + 1;
		else
			high = middle;
	}
	return accounts[low].cown;
}

static void apply_entry(void *arg, void *const data[])
{
	struct account *a = data[0], *b = data[1];

	a->result = bench_step(a->result ^ b->result ^ *(const uint64_t *)arg);
	b->result += a->result >> 7;
}

static double time_store(long n, unsigned flags)
{
	uint64_t dice = 1;

	set_chances();
	for (int i = 0; i < BENCH_ACCOUNTS; i++)
		accounts[i].cown = new_cown(&accounts[i]);
	double start = bench_now();
	for (long i = 1; i <= n; i++) {
		hd_cown *uses[2] = { draw_key(&dice), draw_key(&dice) };
		const struct hd_when how = { .fn = apply_entry, .arg = &dice, .size = sizeof dice, .uses = uses, .n = 2, .flags = flags };
		bench_ok(hd_when_batch(&how, 1), "hd_when_batch");
		if (i % BENCH_AHEAD == 0)
			quiesce();
	}
	quiesce();
	double took = bench_now() - start;
	for (int i = 0; i < BENCH_ACCOUNTS; i++)
		hd_cown_release(accounts[i].cown);
	return took;
}

static double time_free(long n)
{
	return time_store(n, 0);
}

static double time_logged(long n)
{
	return time_store(n, HD_WHEN_LOGGED);
}

void when_store(void)
{
	bench_rate("when_store", time_free, BENCH_AHEAD);
}

void when_log(void)
{
	bench_rate("when_log", time_logged, BENCH_AHEAD);
}

void when_bank(void)
{
	bench_rate("when_bank", time_transfers, BENCH_AHEAD);
}

void shape_bank(void)
{
	bench_shape("shape_bank", run_bank, BENCH_TRANSFERS);
}

/* ---- philosophers ---- */

static struct {
	_Alignas(64) long used;
	hd_cown *cown;
} forks[BENCH_PHILOSOPHERS];

static struct philosopher {
	_Alignas(64) long hunger; /* meals that are left */
	uint64_t result;
} philosophers[BENCH_PHILOSOPHERS];
static int meal_us;

static void sit_down(struct philosopher *p);

static void eat(void *arg, void *const data[])
{
	struct philosopher *p = arg;

	p->result = bench_work(p->result, meal_us);
	++*(long *)data[0];
	++*(long *)data[1];
	if (--p->hunger > 0)
		sit_down(p);
}

static void sit_down(struct philosopher *p)
{
	long i = p - philosophers;

	bench_ok(hd_when(eat, p, forks[i].cown, forks[(i + 1) % BENCH_PHILOSOPHERS].cown), "hd_when");
}

/* n meals. Behaviours run in the order of their calls if they have a fork in common: so every second philosopher sits down first, and then the others. Were
 * each to sit down after its neighbour, each would wait for its neighbour, and they would eat one by one. */
static double time_table(long n, bool in_order)
{
	meal_us = bench_setting("BENCH_MEAL_US", BENCH_MEAL_US);
	for (int i = 0; i < BENCH_PHILOSOPHERS; i++) {
		forks[i].used = 0;
		forks[i].cown = new_cown(&forks[i].used);
		philosophers[i].hunger = n / BENCH_PHILOSOPHERS;
	}
	double start = bench_now();
	for (int first = 0, step = in_order ? 1 : 2; first < step; first++)
		for (int i = first; i < BENCH_PHILOSOPHERS; i += step)
			sit_down(&philosophers[i]);
	quiesce();
	double took = bench_now() - start;
	for (int i = 0; i < BENCH_PHILOSOPHERS; i++) {
		hd_cown_release(forks[i].cown);
		bench_same("philosophers: a meal is missing", forks[i].used, 2 * (n / BENCH_PHILOSOPHERS));
	}
	return took;
}

static double run_philosophers(long n)
{
	return time_table(n, false);
}

static double run_philosophers_in_order(long n)
{
	return time_table(n, true);
}

static void dine(const char *name, bench_body body)
{
	bench_shape(name, body, (long)BENCH_PHILOSOPHERS * bench_setting("BENCH_MEALS", BENCH_MEALS));
}

void shape_philosophers(void)
{
	dine("shape_philosophers", run_philosophers);
}

void shape_philosophers_in_order(void)
{
	dine("shape_philosophers_in_order", run_philosophers_in_order);
}
