/* io/name.c - look-ups of names: what they answer, and that a process can leave one at any moment. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>

#include "io/pool.h"
#include "os/fault.h"
#include "sync/common.h"

/* ---- answers ---- */

static const struct addrinfo streams = { .ai_socktype = SOCK_STREAM };

/* The first address of a name, as text. */
static const char *found(const char *node, const char *service, int *err)
{
	static char text[64];
	struct addrinfo *list = NULL;
	char host[40], port[8];

	*err = hd_getaddrinfo(node, service, &streams, &list, HD_FOREVER);
	CHECK_EQ(*err == 0, list != NULL);
	if (*err != 0)
		return "";
	CHECK_EQ(hd_getnameinfo(list->ai_addr, list->ai_addrlen, host, sizeof host, port, sizeof port,
				NI_NUMERICHOST | NI_NUMERICSERV, HD_FOREVER),
		 0);
	snprintf(text, sizeof text, "%s %s", host, port);
	freeaddrinfo(list);
	return text;
}

static int error_of(const char *node, const char *service)
{
	int err;

	found(node, service, &err);
	return err;
}

static void check_answers(void)
{
	int err;

	errno = 9;
	CHECK_STR(found("127.0.0.1", "80", &err), "127.0.0.1 80");
	CHECK_STR(found("::1", "65535", &err), "::1 65535");
	const char *local = found("localhost", "7", &err);
	CHECK(strcmp(local, "127.0.0.1 7") == 0 ||
	      strcmp(local, "::1 7") == 0); /* which one comes first is the system's to say */
	err = error_of("no-such-host.invalid", "80");
	CHECK(err == HD_EAI(EAI_NONAME) || err == HD_EAI(EAI_AGAIN));
	CHECK(strcmp(hd_error(err), gai_strerror(err == HD_EAI(EAI_NONAME) ? EAI_NONAME : EAI_AGAIN)) == 0);
	CHECK(error_of("127.0.0.1", "no-such-service") < HD_EAI(0));
	CHECK_EQ(errno, 9);
}

HD_WORKERS_TEST(name_answers_on_process)
{
	check_answers();
	(void)workers;
}

HD_TEST(name_answers_on_plain_thread)
{
	check_answers();
}

HD_PROCESS_TEST(name_of_an_address)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons(80),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct sockaddr *at = (struct sockaddr *)&address;
	char host[64] = "", tiny[4];

	CHECK_EQ(hd_getnameinfo(at, sizeof address, host, sizeof host, NULL, 0, 0, HD_FOREVER), 0);
	CHECK_STR(host, hd_is_simulated() ? "127.0.0.1" : "localhost");
	CHECK_EQ(hd_getnameinfo(at, sizeof address, tiny, sizeof tiny, NULL, 0, 0, HD_FOREVER), HD_EAI(EAI_OVERFLOW));
	CHECK_EQ(hd_getnameinfo(at, 1000, host, sizeof host, NULL, 0, 0, HD_FOREVER), HD_EAI(EAI_FAMILY));
	CHECK_EQ(hd_getnameinfo(at, sizeof address, host, sizeof host, NULL, 0, 0, HD_SEC(5)), -EINVAL);
}

HD_PROCESS_TEST(name_of_the_resolvers_errors_is_none_of_errno)
{
	static const int codes[] = { EAI_AGAIN, EAI_BADFLAGS, EAI_FAIL, EAI_FAMILY, EAI_NONAME, EAI_SERVICE, EAI_SOCKTYPE };

	for (unsigned i = 0; i < sizeof codes / sizeof codes[0]; i++) {
		CHECK_STR(hd_error(HD_EAI(codes[i])), gai_strerror(codes[i]));
		CHECK(HD_EAI(codes[i]) < -4095);
	}
	CHECK_STR(hd_error(HD_EAI(1000)), "an unknown error");
}

/* ---- numbers need no thread; names do ---- */

HD_PROCESS_TEST(name_in_numbers_needs_no_thread)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	char host[64];
	int err;

	hd__fault_arm(HD__FAULT_THREAD, 1, true);
	CHECK_STR(found("127.0.0.1", "80", &err), "127.0.0.1 80");
	CHECK_EQ(error_of(NULL, "80"), 0);
	CHECK_EQ(hd_getnameinfo((struct sockaddr *)&address, sizeof address, host, sizeof host, NULL, 0, NI_NUMERICHOST, 0), 0);
	CHECK_STR(host, "0.0.0.0");
	CHECK_EQ(error_of("localhost", "80"), -EAGAIN);
	CHECK_EQ(hd_getnameinfo((struct sockaddr *)&address, sizeof address, host, sizeof host, NULL, 0, 0, HD_FOREVER),
		 -EAGAIN);
	hd__fault_arm(HD__FAULT_THREAD, 0, false);
	CHECK_EQ(error_of("localhost", "80"), 0);
	CHECK_EQ(hd__pool_threads(hd__self()->sched->pool), 1);
}

HD_PROCESS_TEST(name_without_memory_says_so)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	char host[64];

	for (unsigned nth = 1; nth <= 2; nth++) { /* the look-up's, and the thread's */
		hd__fault_arm(HD__FAULT_ALLOC, nth, true);
		CHECK_EQ(error_of("localhost", "80"), -ENOMEM);
		CHECK_EQ(hd_getnameinfo((struct sockaddr *)&address, sizeof address, host, sizeof host, NULL, 0, 0, HD_FOREVER),
			 -ENOMEM);
		hd__fault_arm(HD__FAULT_ALLOC, 0, false);
	}
	CHECK_EQ(error_of("localhost", "80"), 0);
}

/* ---- a slow resolver ---- */

static struct hd_semaphore server; /* a signal for each answer */
static long asked, answered;

/* The server answers when the test lets it. */
static bool ask_server(enum hd__fault kind)
{
	if (kind == HD__FAULT_NAME) {
		add(&asked, 1);
		CHECK_EQ(hd_semaphore_wait(&server, HD_FOREVER), 0);
		add(&answered, 1);
	}
	return false;
}

static void begin_slow(void)
{
	hd_semaphore_init(&server, 0);
	set(&asked, 0);
	set(&answered, 0);
	st_rel(&hd__fault_door, ask_server);
}

static void end_slow(void)
{
	while (value_of(&answered) < value_of(&asked)) {
		CHECK_EQ(hd_semaphore_signal(&server), 0);
		CHECK_EQ(hd_sleep(HD_US(100)), 0);
	}
	st_rel(&hd__fault_door, NULL);
}

static void *look_up_localhost(void *arg)
{
	(void)arg;
	return (void *)(long)error_of("localhost", "80");
}

static void *look_up_name(void *arg)
{
	static const struct sockaddr_in address = { .sin_family = AF_INET };
	char host[64];

	(void)arg;
	return (void *)(long)hd_getnameinfo((const struct sockaddr *)&address, sizeof address, host, sizeof host, NULL, 0, 0,
					    HD_FOREVER);
}

static void await_asked(long n)
{
	while (value_of(&asked) < n)
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
}

static long answer_of(hd_pid pid)
{
	void *result;

	CHECK_EQ(hd_join(pid, &result, HD_FOREVER), 0);
	return (long)result;
}

/* The process goes on at once; the thread is still with the server, and drops what it gets. */
HD_WORKERS_TEST(name_look_up_can_be_left)
{
	struct addrinfo *list = (struct addrinfo *)&server;

	begin_slow();
	hd_pid cancelled = spawned(hd_spawn(look_up_localhost, NULL));
	hd_pid killed = spawned(hd_spawn(look_up_localhost, NULL));
	hd_pid cancelled_too = spawned(hd_spawn(look_up_name, NULL));
	await_asked(3);
	CHECK_EQ(info_on(cancelled).why, HD_WAIT_NAME);
	CHECK_EQ(hd_cancel(cancelled), 0);
	CHECK_EQ(hd_cancel(cancelled_too), 0);
	CHECK_EQ(answer_of(cancelled), -ECANCELED);
	CHECK_EQ(answer_of(cancelled_too), -ECANCELED);
	CHECK_EQ(hd_terminate(killed, HD_FOREVER), 0);
	CHECK_EQ(hd_getaddrinfo("localhost", NULL, NULL, &list, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK(list == NULL);
	CHECK_EQ(hd_getaddrinfo("localhost", NULL, NULL, &list, 0), -ETIMEDOUT);
	CHECK_EQ(value_of(&answered), 0);
	end_slow();
	(void)workers;
}

/* Answers, deadlines and cancels race: a look-up has found what there is, or says why not. */
static void *look_up_often(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;

	for (int i = 0; i < hd_scaled(30); i++) {
		struct addrinfo *list;
		int err = hd_getaddrinfo("localhost", "80", &streams, &list, hd_after(HD_US(next_random(&seed) % 100)));
		CHECK(err == 0 || err == -ETIMEDOUT || err == -ECANCELED);
		CHECK_EQ(err == 0, list != NULL);
		if (err == 0)
			freeaddrinfo(list);
		hd_cancel_clear();
	}
	return NULL;
}

HD_WORKERS_TEST(name_answer_races_with_deadline_and_cancel)
{
	hd_pid pids[6];
	unsigned seed = (unsigned)workers;

	for (long i = 0; i < 6; i++)
		pids[i] = spawned(hd_spawn(look_up_often, (void *)(i + 1)));
	for (int i = 0; i < hd_scaled(60); i++) {
		ANY_ANSWER(hd_cancel(pids[next_random(&seed) % 6]));
		CHECK_EQ(hd_sleep(HD_US(next_random(&seed) % 60)), 0);
	}
	ANY_ANSWER(hd_terminate(pids[0], HD_FOREVER));
	for (int i = 0; i < 6; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
}

/* The runtime ends while threads are still with the server. */
static void *leave_behind(void *arg)
{
	spawned(hd_spawn_with(&(struct hd_spawn){ .daemon = true }, look_up_localhost, NULL));
	await_asked(1);
	return arg;
}

HD_TEST(name_look_up_survives_its_runtime)
{
	begin_slow();
	CHECK_EQ(hd_run(&(struct hd_config){ .workers = 2, .fixed = true }, leave_behind, NULL), 0);
	CHECK_EQ(value_of(&answered), 0);
	end_slow();
}
