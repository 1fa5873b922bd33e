/* warehouse.c - orders for several products at once: each is shipped whole or not at all, on all workers, without a lock.
 *
 * A product is a cown, and an order a behaviour on the products that it names. Orders that have a product in common are served in the
 * order in which they came: so the same ones are refused on any number of workers. A stocktake only reads the products. It sees all orders
 * that came before it, and none that came after it. */
#include "../check.h"

#include <heddle.h>

enum { PRODUCTS = 6, ORDERS = 60, LINES = 3, STOCK = 50, DELIVERY = 20 };

struct product {
	int price, stock;
};

struct order {
	int number, lines, pieces[LINES]; /* so many pieces of each of its products */
};

static struct product products[PRODUCTS] = { { 2, STOCK }, { 3, STOCK },  { 5, STOCK },
					     { 7, STOCK }, { 11, STOCK }, { 13, STOCK } };
static hd_cown *shelf[PRODUCTS], *books;
static bool shipped[ORDERS]; /* each is written by its order's behaviour */
static long turnover;	     /* what the books own */

static void write_down(void *arg, void *const data[])
{
	const long *value = arg;

	*(long *)data[0] += *value;
}

/* Has all its products. The books are not among them: orders would wait for each other. They get a behaviour of their own. */
static void ship(void *arg, void *const data[])
{
	const struct order *o = arg;
	long value = 0;

	for (int i = 0; i < o->lines; i++)
		if (((struct product *)data[i])->stock < o->pieces[i])
			return;
	for (int i = 0; i < o->lines; i++) {
		struct product *p = data[i];
		p->stock -= o->pieces[i];
		value += (long)p->price * o->pieces[i];
	}
	shipped[o->number] = true;
	CHECK(hd_when_args(write_down, &value, sizeof value, NULL, books) == 0);
}

static void deliver(void *arg, void *const data[])
{
	(void)arg;
	for (int i = 0; i < 2; i++)
		((struct product *)data[i])->stock += DELIVERY;
}

static void take_stock(void *arg, void *const data[])
{
	int *pieces = arg;

	for (int i = 0; i < PRODUCTS; i++) {
		const struct product *p = data[i];
		CHECK(p->stock >= 0);
		*pieces += p->stock;
	}
}

/* An order for one to three products that follow each other. */
static void order(int number, unsigned dice)
{
	struct order o = { .number = number, .lines = 1 + (int)(dice >> 10) % LINES };
	hd_cown *uses[LINES];

	for (int i = 0; i < o.lines; i++) {
		uses[i] = shelf[((dice >> 16) + (unsigned)i) % PRODUCTS];
		o.pieces[i] = 1 + (int)(dice >> (20 + 3 * i)) % 7;
	}
	CHECK(hd_when_args_n(ship, &o, sizeof o, NULL, uses, (size_t)o.lines) == 0);
}

static void *open_for_a_day(void *arg)
{
	hd_cown *reads[PRODUCTS];
	int first = 0, second = 0, evening = 0, refused = 0;
	unsigned dice = 1;
	long worth = 0;

	for (int i = 0; i < PRODUCTS; i++) {
		CHECK((shelf[i] = hd_cown_new(&products[i], NULL)) != NULL);
		reads[i] = HD_READ(shelf[i]);
	}
	CHECK((books = hd_cown_new(&turnover, NULL)) != NULL);
	for (int i = 0; i < ORDERS; i++) {
		if (i == ORDERS / 2) { /* two at the same time, and they see the same */
			CHECK(hd_when_n(take_stock, &first, reads, PRODUCTS) == 0);
			CHECK(hd_when_n(take_stock, &second, reads, PRODUCTS) == 0);
			CHECK(hd_when(deliver, NULL, shelf[0], shelf[PRODUCTS - 1]) == 0);
		}
		order(i, dice = dice * 1664525 + 1013904223);
	}
	CHECK(hd_when_n(take_stock, &evening, reads, PRODUCTS) == 0);
	CHECK(hd_quiesce(HD_FOREVER) == 0); /* no behaviour is left: what they have written is ours */

	for (int i = 0; i < PRODUCTS; i++) {
		int delivered = i == 0 || i == PRODUCTS - 1 ? DELIVERY : 0;
		worth += (long)products[i].price * (STOCK + delivered - products[i].stock);
		hd_cown_release(shelf[i]);
	}
	hd_cown_release(books);
	CHECK(first == second && worth == turnover);
	printf("refused:");
	for (int i = 0; i < ORDERS; i++)
		if (!shipped[i])
			printf(" %d", i), refused++;
	printf("\n%d of %d orders shipped, worth %ld\n", ORDERS - refused, ORDERS, turnover);
	printf("pieces at noon: %d, in the evening: %d\n", first, evening);
	return arg;
}

int main(void)
{
	return hd_run(NULL, open_for_a_day, NULL) != 0;
}
