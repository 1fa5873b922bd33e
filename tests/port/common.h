/* port/common.h - what the tests of ports share. */
#ifndef TESTS_PORT_COMMON_H
#define TESTS_PORT_COMMON_H

#include <errno.h>
#include <string.h>

#include "life/common.h"
#include "os/fault.h"
#include "sched/workers.h"

static inline int many(int n)
{
	return hd_is_simulated() ? n / 100 + 2 : hd_scaled(n);
}

static inline hd_port *made_port(const struct hd_port_options *options)
{
	hd_port *port = hd_port_new(options);

	CHECK(port != NULL);
	return port;
}

static inline void send_tag(hd_port *port, int64_t tag)
{
	CHECK_EQ(hd_send(port, tag, NULL, 0, HD_FOREVER), 0);
}

/* Receives, and drops what has come. Answers its tag. */
static inline int64_t received_tag(hd_port *port)
{
	struct hd_message m;

	CHECK_EQ(hd_receive(port, &m, HD_FOREVER), 0);
	int64_t tag = m.tag;
	hd_message_drop(&m);
	return tag;
}

static inline size_t length_of(hd_port *port)
{
	struct hd_port_info info;

	hd_port_info(port, &info);
	return info.length;
}

/* Nothing is left of messages and ports. A death notice can be received a moment before its sender, on another worker, has let go of the port. */
static inline void check_all_gone(void)
{
	struct hd_stats stats = stats_now();

	for (int i = 0; i < 100000 && stats.live_messages + stats.live_ports != 0; i++) {
		hd_yield();
		stats = stats_now();
	}

	CHECK_EQ(stats.live_messages, 0);
	CHECK_EQ(stats.live_ports, 0);
}

#endif
