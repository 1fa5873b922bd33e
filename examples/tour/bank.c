/* bank.c - a bank without a lock: a transfer runs when both accounts are its own. */
#include "chapter.h"

#include <errno.h>

/* tour: begin */
enum { ACCOUNTS = 1000 };

static long balance[ACCOUNTS], transfers, total;
static hd_cown *account[ACCOUNTS], *seen[ACCOUNTS]; /* a cown owns what behaviours use */

static void transfer(void *arg, void *const data[])
{
	(void)arg;
	*(long *)data[0] -= 1;
	*(long *)data[1] += 1;
}

static void add_up(void *arg, void *const data[])
{
	(void)arg;
	for (int i = 0; i < ACCOUNTS; i++)
		total += *(const long *)data[i];
}

static void *bank(void *arg)
{
	unsigned dice = 1;
	int err = 0;

	for (int i = 0; i < ACCOUNTS; i++) {
		balance[i] = 100;
		if ((account[i] = hd_cown_new(&balance[i], NULL)) == NULL)
			hd_fail(ENOMEM);
		seen[i] = HD_READ(account[i]);
	}
	for (long i = 0; i < transfers && err == 0; i++) {
		dice = dice * 1664525 + 1013904223;
		err = hd_when(transfer, NULL, account[(dice >> 8) % ACCOUNTS], account[(dice >> 18) % ACCOUNTS]);
	}
	if (err == 0)
		err = hd_when_n(add_up, NULL, seen, ACCOUNTS); /* runs after all transfers: it was made after them */
	if (err != 0 || hd_quiesce(HD_FOREVER) != 0)
		hd_shutdown(1);
	for (int i = 0; i < ACCOUNTS; i++)
		hd_cown_release(account[i]);
	return arg;
}

int chapter_bank(void)
{
	hd_time start = hd_now();

	transfers = repetitions(200000);
	if (hd_run(NULL, bank, NULL) != 0)
		return 1;
	printf("  %s transfers in %.0f ms; the bank has %s\n", thousands(transfers), (double)(hd_now() - start) / 1e6,
	       thousands(total));
	return total != 100L * ACCOUNTS;
}
/* tour: end */
