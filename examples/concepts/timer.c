/* timer.c - a process whose deadlines are messages to itself: leases that end unless they are given back, and a tick. */
#include <heddle.h>
#include <stdio.h>

enum { ENDED, TICK, LEASES = 3 };

static hd_timer lease(hd_port *port, int number, hd_time until)
{
	hd_timer timer = hd_send_after(port, ENDED, &number, sizeof number, until);

	if (timer < 0)
		hd_shutdown(1);
	return timer;
}

static void *first(void *arg)
{
	hd_port *port = hd_port_new(NULL);
	struct hd_message m;
	bool ended[LEASES] = { false };
	unsigned long due = 0;

	if (port == NULL)
		return arg;
	hd_timer timers[LEASES] = { lease(port, 0, hd_after(HD_MS(5))), lease(port, 1, hd_after(HD_SEC(60))),
				    lease(port, 2, hd_after(HD_MS(8))) };
	hd_timer ticks = hd_send_every(port, TICK, hd_after(HD_MS(1)), HD_MS(1));
	if (ticks < 0)
		hd_shutdown(1);
	while ((due < 10 || !ended[0] || !ended[2]) && hd_receive(port, &m, HD_FOREVER) == 0) {
		if (m.tag == TICK)
			due += ((struct hd_tick *)m.data)->missed + 1; /* more than one, if this process is slow */
		else
			ended[*(int *)m.data] = true;
		hd_message_drop(&m);
	}
	for (int i = 0; i < LEASES; i++)
		printf("lease %d: %s\n", i, hd_send_cancel(timers[i]) == 0 ? "given back" : ended[i] ? "had ended" : "is lost");
	printf("ticks: %s\n", hd_send_cancel(ticks) == 0 ? "stopped" : "are lost");
	hd_port_release(port);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
