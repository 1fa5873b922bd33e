/* supervisor.c - a server that crashes now and then. Its supervisor starts it again, and its clients go on. */
#include <errno.h>
#include <heddle.h>
#include <stdio.h>

enum { QUESTION = 1 };

/* Doubles numbers. Of 13 it dies. */
static void *doubler(void *arg)
{
	hd_port *port = hd_port_new(NULL);
	struct hd_message m;

	if (port == NULL || hd_register("doubler", port) != 0)
		hd_fail(ENOMEM);
	while (hd_receive(port, &m, HD_FOREVER) == 0) {
		int n = *(const int *)m.data;
		if (n == 13)
			hd_fail(EDOM); /* the call that it has not answered ends with -EPIPE */
		n *= 2;
		if (hd_reply(&m, 0, &n, sizeof n) != 0)
			puts("the client has gone");
		hd_message_drop(&m);
	}
	return arg;
}

/* Asks the server that has the name now. There is none while it is being started again. */
static int ask(int n)
{
	struct hd_message answer;
	int err;

	do {
		hd_port *port = hd_whereis("doubler");
		if (port == NULL && hd_sleep(HD_MS(1)) != 0)
			return -ECANCELED;
		err = port == NULL ? -ESRCH : hd_call(port, QUESTION, &n, sizeof n, &answer, HD_FOREVER);
		hd_port_release(port);
	} while (err == -ESRCH);
	if (err != 0)
		return err;
	n = *(const int *)answer.data;
	hd_message_drop(&answer);
	return n;
}

static void ask_and_say(int n)
{
	int answer = ask(n);

	if (answer < 0)
		printf("%d: %s\n", n, hd_error(answer));
	else
		printf("%d: %d\n", n, answer);
}

static const struct hd_supervised children[] = { { .name = "doubler", .entry = doubler } };
static const struct hd_supervisor servers = { .name = "servers", .children = children, .count = 1 };

static void *first(void *arg)
{
	hd_pid supervisor = hd_spawn(hd_supervisor_entry, (void *)&servers);
	struct hd_supervised_info info;

	if (supervisor < 0)
		return arg;
	ask_and_say(4);
	ask_and_say(13);
	ask_and_say(21);
	hd_port *port = hd_whereis("servers");
	if (port != NULL && hd_supervisor_children(port, &info, 1, HD_FOREVER) == 1)
		printf("%s was started again: %u\n", info.name, info.restarts);
	hd_port_release(port);
	if (hd_terminate(supervisor, HD_FOREVER) == 0 && hd_join(supervisor, NULL, HD_FOREVER) == 0)
		puts("the supervisor and its child have ended");
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
