/* io/writer.c - writers against a model: what was put arrives once and in order, whatever the deadlines and cancels; errors are kept. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "sync/common.h"

/* ---- against a model ---- */

#define EXPECTED_MAX 40000

static struct {
	char text[EXPECTED_MAX]; /* what was put */
	size_t length;
	int fds[2]; /* for reading, for writing */
} stream;

static void put(struct hd_writer *w, const char *data, size_t n, hd_time until)
{
	while (hd_writer_put(w, data, n, until) != 0) {
		int err = hd_writer_clear(w);
		CHECK(err == -ETIMEDOUT || err == -ECANCELED);
		hd_cancel_clear();
		until = HD_FOREVER;
		if (n > w->size) /* some of it may have been written: only a small one can be repeated */
			CHECK(!"a large put was called off");
	}
	memcpy(stream.text + stream.length, data, n);
	stream.length += n;
}

static void print(struct hd_writer *w, unsigned number, hd_time until)
{
	char text[64];
	int n = snprintf(text, sizeof text, "%u,%-5s;", number, "x"), err;

	while ((err = hd_writer_printf(w, until, "%u,%-5s;", number, "x")) != 0) {
		CHECK_EQ(hd_writer_clear(w), err);
		hd_cancel_clear();
		if (err == -EMSGSIZE) {
			CHECK((size_t)n >= w->size);
			return;
		}
		CHECK(err == -ETIMEDOUT || err == -ECANCELED);
		until = HD_FOREVER;
	}
	memcpy(stream.text + stream.length, text, (size_t)n);
	stream.length += (size_t)n;
}

static void *write_as_model(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	char buffer[40], data[100];
	struct hd_writer w;
	long puts = hd_is_simulated() ? 20 : hd_scaled(400);

	hd_writer_init(&w, stream.fds[1], buffer, 2 + seed % 38);
	for (long i = 0; i < puts; i++) {
		size_t n = next_random(&seed) % (seed % 3 == 0 ? sizeof data : w.size + 1);
		hd_time until = next_random(&seed) % 2 ? HD_FOREVER : hd_after(HD_US(next_random(&seed) % 20));
		for (size_t k = 0; k < n; k++)
			data[k] = (char)('a' + next_random(&seed) % 26);
		if (next_random(&seed) % 3 == 0) {
			print(&w, next_random(&seed), until);
		} else if (n > w.size) { /* undisturbed */
			hd_set_cancel_state(HD_CANCEL_DISABLED);
			put(&w, data, n, HD_FOREVER);
			hd_set_cancel_state(HD_CANCEL_ENABLED);
		} else {
			put(&w, data, n, until);
		}
	}
	int err;
	while ((err = hd_writer_flush(&w, hd_after(HD_US(next_random(&seed) % 20)))) != 0) {
		CHECK(err == -ETIMEDOUT || err == -ECANCELED);
		CHECK_EQ(hd_writer_clear(&w), 0);
		hd_cancel_clear();
	}
	CHECK_EQ(hd_close(stream.fds[1]), 0);
	return NULL;
}

static void *read_slowly(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	static char got[EXPECTED_MAX];
	size_t length = 0;
	ssize_t n;

	while ((n = hd_read(stream.fds[0], got + length, 1 + next_random(&seed) % 60, HD_FOREVER)) > 0) {
		length += (size_t)n;
		if (next_random(&seed) % 8 == 0)
			CHECK_EQ(hd_sleep(HD_US(next_random(&seed) % 30)), 0);
	}
	CHECK_EQ(n, 0);
	CHECK_EQ(hd_close(stream.fds[0]), 0);
	CHECK_EQ(length, stream.length);
	CHECK(memcmp(got, stream.text, length) == 0);
	return NULL;
}

HD_WORKERS_TEST(writer_writes_each_byte_once)
{
	for (unsigned round = 0; round < 4; round++) {
		unsigned seed = round + (unsigned)workers;
		stream.length = 0;
		CHECK_EQ(round % 2 ? hd_pipe(stream.fds) : hd_socketpair(AF_UNIX, SOCK_STREAM, stream.fds), 0);
		if (!hd_is_simulated() && round % 2 == 0) /* or all of it would fit */
			CHECK_EQ(setsockopt(stream.fds[1], SOL_SOCKET, SO_SNDBUF, &(int){ 1 }, sizeof(int)), 0);
		hd_pid writer = spawned(hd_spawn(write_as_model, (void *)(long)(11 * round + 1)));
		hd_pid reader = spawned(hd_spawn(read_slowly, (void *)(long)seed));
		for (int i = 0; i < 30; i++) {
			ANY_ANSWER(hd_cancel(writer));
			CHECK_EQ(hd_sleep(HD_US(next_random(&seed) % 40)), 0);
		}
		CHECK_EQ(hd_join(writer, NULL, HD_FOREVER), 0);
		CHECK_EQ(hd_join(reader, NULL, HD_FOREVER), 0);
	}
}

/* ---- errors ---- */

/* Looking once, at the end, is enough: whatever was missed, the flush says so. */
HD_WORKERS_TEST(writer_keeps_its_error)
{
	struct hd_writer w;
	char buffer[8];
	int fds[2];

	errno = 9;
	CHECK_EQ(hd_socketpair(AF_UNIX, SOCK_STREAM, fds), 0);
	hd_writer_init(&w, fds[0], buffer, sizeof buffer);
	CHECK_EQ(hd_writer_put(&w, "abc", 3, HD_FOREVER), 0);
	CHECK_EQ(hd_writer_printf(&w, HD_FOREVER, "%s", "as long!"), -EMSGSIZE);
	CHECK_EQ(hd_writer_put(&w, "d", 1, HD_FOREVER), -EMSGSIZE);
	CHECK_EQ(hd_writer_flush(&w, HD_FOREVER), -EMSGSIZE);
	CHECK_EQ(hd_writer_clear(&w), -EMSGSIZE);
	CHECK_EQ(hd_writer_printf(&w, HD_FOREVER, "%s", "defghij"), 0);
	CHECK_EQ(hd_writer_flush(&w, HD_FOREVER), 0);
	CHECK_EQ(hd_read_full(fds[1], buffer, 8, HD_FOREVER), 8);
	CHECK(memcmp(buffer, "abcdefgh", 8) == 0);
	CHECK_EQ(hd_close(fds[1]), 0);
	CHECK_EQ(hd_writer_put(&w, "0123", 4, HD_FOREVER), 0);
	CHECK_EQ(hd_writer_put(&w, "456789", 6, HD_FOREVER), -EPIPE);
	CHECK_EQ(hd_writer_put(&w, "", 0, HD_FOREVER), -EPIPE);
	CHECK_EQ(hd_writer_flush(&w, HD_FOREVER), -EPIPE);
	CHECK_EQ(hd_close(fds[0]), 0);
	CHECK_EQ(errno, 9);
	(void)workers;
}

/* A put that came too late took nothing, and is kept as an error; a flush that came too late is not. */
HD_PROCESS_TEST(writer_goes_on_after_a_deadline)
{
	static char much[300000];
	struct hd_writer w;
	char buffer[8], got[8];
	int fds[2];

	CHECK_EQ(hd_pipe(fds), 0);
	ssize_t filled = 0, n;
	while ((n = hd_write(fds[1], much, sizeof much, 0)) > 0)
		filled += n;
	hd_writer_init(&w, fds[1], buffer, sizeof buffer);
	CHECK_EQ(hd_writer_put(&w, "12345", 5, 0), 0);
	CHECK_EQ(hd_writer_flush(&w, hd_after(HD_US(10))), -ETIMEDOUT);
	CHECK_EQ(hd_writer_put(&w, "678", 3, 0), 0);
	CHECK_EQ(hd_writer_put(&w, "9", 1, 0), -ETIMEDOUT);
	CHECK_EQ(hd_writer_flush(&w, HD_FOREVER), -ETIMEDOUT);
	CHECK_EQ(hd_read_full(fds[0], much, (size_t)filled, HD_FOREVER), filled);
	CHECK_EQ(hd_writer_clear(&w), -ETIMEDOUT);
	CHECK_EQ(hd_writer_flush(&w, HD_FOREVER), 0);
	CHECK_EQ(hd_read_full(fds[0], got, 8, HD_FOREVER), 8);
	CHECK(memcmp(got, "12345678", 8) == 0);
	CHECK_EQ(hd_close(fds[0]), 0);
	CHECK_EQ(hd_close(fds[1]), 0);
}
