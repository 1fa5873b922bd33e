/* port.c - a bank account that is a process: the other processes send it messages, and call it to hear its balance. */
#include <heddle.h>
#include <stdio.h>

enum { DEPOSIT, WITHDRAW, BALANCE };

/* The account's money belongs to this process alone: there is no lock. It ends when it is terminated, with the program. */
static void *account(void *arg)
{
	long balance = 0;
	struct hd_message m;

	while (hd_receive(NULL, &m, HD_FOREVER) == 0) {
		int err = 0;
		switch (m.tag) {
		case DEPOSIT:
			balance += *(long *)m.data;
			break;
		case WITHDRAW:
			balance -= *(long *)m.data;
			break;
		case BALANCE:
			err = hd_reply(&m, BALANCE, &balance, sizeof balance);
			break;
		default:
			break;
		}
		if (err != 0)
			fprintf(stderr, "account: %s\n", hd_error(err)); /* the process that asked has given up */
		hd_message_drop(&m);
	}
	return arg;
}

static void *client(void *port)
{
	long amount = 10;

	for (int i = 0; i < 100; i++)
		if (hd_send(port, i % 4 == 0 ? WITHDRAW : DEPOSIT, &amount, sizeof amount, HD_FOREVER) != 0)
			hd_shutdown(1);
	return NULL;
}

static void *first(void *arg)
{
	hd_port *port = hd_port_new(&(struct hd_port_options){ .unowned = true });
	struct hd_group clients = { 0 };
	struct hd_message answer;

	if (port == NULL ||
	    hd_spawn_with(&(struct hd_spawn){ .port = port, .daemon = true, .detached = true }, account, NULL) < 0)
		return arg;
	for (int i = 0; i < 5; i++)
		if (hd_group_spawn(&clients, client, port) < 0)
			hd_shutdown(1);
	if (hd_group_wait(&clients, HD_FOREVER) != 0)
		hd_shutdown(1);
	if (hd_call(port, BALANCE, NULL, 0, &answer, hd_after(HD_SEC(10))) == 0) { /* behind all that they have sent */
		printf("balance: %ld\n", *(long *)answer.data);
		hd_message_drop(&answer);
	}
	hd_port_release(port);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
