/* when.c - a bank: transfers between a hundred accounts, on all workers at once, without a lock. */
#include <heddle.h>
#include <stdio.h>
#include <stdlib.h>

enum { ACCOUNTS = 100, TRANSFERS = 10000 };

struct account {
	long balance;
};

struct transfer {
	long amount;
};

/* Runs when both accounts are its own. */
static void transfer(void *arg, void *const data[])
{
	const struct transfer *t = arg;
	struct account *from = data[0], *to = data[1];

	from->balance -= t->amount;
	to->balance += t->amount;
}

/* Runs when no behaviour that was made before writes any account; others may read them at the same time. */
static void audit(void *arg, void *const data[])
{
	long *sum = arg;

	for (int i = 0; i < ACCOUNTS; i++)
		*sum += ((struct account *)data[i])->balance;
}

static void check(int err)
{
	if (err != 0)
		hd_fail(err);
}

static void *bank(void *arg)
{
	hd_cown *accounts[ACCOUNTS], *reads[ACCOUNTS];
	unsigned dice = 1;
	long sum = 0;

	for (int i = 0; i < ACCOUNTS; i++) {
		struct account *a = calloc(1, sizeof *a);
		if (a == NULL || (accounts[i] = hd_cown_new(a, free)) == NULL)
			hd_fail(ENOMEM);
		a->balance = 100;
		reads[i] = HD_READ(accounts[i]);
	}
	for (int i = 0; i < TRANSFERS; i++) {
		dice = dice * 1664525 + 1013904223;
		unsigned from = (dice >> 8) % ACCOUNTS, to = (dice >> 16) % ACCOUNTS;
		struct transfer t = { .amount = dice >> 28 };
		check(hd_when_args(transfer, &t, sizeof t, NULL, accounts[from], accounts[to]));
	}
	check(hd_when_n(audit, &sum, reads, ACCOUNTS));
	check(hd_quiesce(HD_FOREVER));
	printf("after %d transfers the bank has %ld\n", TRANSFERS, sum);
	for (int i = 0; i < ACCOUNTS; i++)
		hd_cown_release(accounts[i]);
	return arg;
}

int main(void)
{
	int err = hd_run(NULL, bank, NULL);

	if (err < 0)
		fprintf(stderr, "when: %s\n", hd_error(err));
	return err != 0;
}
