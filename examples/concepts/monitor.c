/* monitor.c - an account that is never overdrawn: a process that wants too much waits until there is enough. */
#include <heddle.h>
#include <stdio.h>

static struct hd_monitor account; /* guards the balance */
static int balance;

static void *withdraw(void *arg)
{
	int amount = (int)(intptr_t)arg, err = 0;

	if (hd_monitor_enter(&account, HD_FOREVER) != 0)
		return NULL;
	while (err == 0 && balance < amount)
		err = hd_monitor_wait(&account, NULL, HD_FOREVER); /* inside again, whatever it answers */
	if (err == 0) {
		balance -= amount;
		printf("gets %d, leaves %d\n", amount, balance);
	}
	hd_monitor_exit(&account);
	return NULL;
}

static void deposit(int amount)
{
	if (hd_monitor_enter(&account, HD_FOREVER) != 0)
		return;
	balance += amount;
	printf("pays in %d\n", amount);
	hd_monitor_signal_all(&account, NULL); /* each waiter looks again whether it is enough */
	hd_monitor_exit(&account);
}

static void *first(void *arg)
{
	hd_pid big = hd_spawn(withdraw, (void *)100), small = hd_spawn(withdraw, (void *)30);

	deposit(50);
	if (hd_join(small, NULL, HD_FOREVER) != 0)
		hd_shutdown(1);
	deposit(80);
	if (hd_join(big, NULL, HD_FOREVER) != 0)
		hd_shutdown(1);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
