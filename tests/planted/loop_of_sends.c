/* loop_of_sends.c - two processes tell two others, each both of them, and all should hear it in the same order.
 *
 * Wrong:      each sends to the one port and then to the other.
 * Schedule:   the first sends to the left port; the second sends to both; the first sends to the right port.
 * Shows:      assert: the two ports have the two messages in different orders.
 * Fix:        hd_send_all: both messages in one step. */
#include "planted.h"

static hd_port *left, *right;

static void *tell_both(void *arg)
{
	int64_t tag = number_of(arg);

#ifdef FIXED
	struct hd_parcel both[] = { { left, { .tag = tag } }, { right, { .tag = tag } } };
	MUST(hd_send_all(both, 2) == 0);
#else
	MUST(hd_send(left, tag, NULL, 0, HD_FOREVER) == 0);
	MUST(hd_send(right, tag, NULL, 0, HD_FOREVER) == 0);
#endif
	return arg;
}

PLANTED_MAIN
{
	struct hd_message one, other;

	left = hd_port_new(NULL);
	right = hd_port_new(NULL);
	MUST(left != NULL && right != NULL);
	TOGETHER(tell_both, tell_both);
	for (int i = 0; i < 2; i++) {
		MUST(hd_receive(left, &one, HD_FOREVER) == 0);
		MUST(hd_receive(right, &other, HD_FOREVER) == 0);
		MUST(one.tag == other.tag);
	}
	hd_port_release(left);
	hd_port_release(right);
}
