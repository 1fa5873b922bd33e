/* io/reader.c - readers against a model: whatever the sizes, deadlines and cancels, each byte of the stream is taken once and in order. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "sync/common.h"

/* ---- a stream ---- */

#define TEXT_MAX 20000
#define BUFFER_MAX 40

static struct stream {
	char text[TEXT_MAX];
	size_t length;
	int fds[2]; /* for reading, for writing */
	unsigned seed;
} stream;

static void make_stream(unsigned seed)
{
	static const char letters[] = "abcdefgh\r\n";

	stream.seed = seed;
	stream.length = hd_is_simulated() ? 150 : (size_t)hd_scaled(TEXT_MAX);
	for (size_t i = 0; i < stream.length; i++)
		stream.text[i] = letters[next_random(&stream.seed) % 10];
	if (seed % 2)
		CHECK_EQ(hd_pipe(stream.fds), 0);
	else
		CHECK_EQ(hd_socketpair(AF_UNIX, SOCK_STREAM, stream.fds), 0);
}

/* Writes the text in pieces of any size, with pauses. */
static void *write_pieces(void *arg)
{
	unsigned seed = stream.seed + 1;

	for (size_t at = 0; at < stream.length;) {
		size_t n = 1 + next_random(&seed) % 50;
		if (n > stream.length - at)
			n = stream.length - at;
		CHECK_EQ(hd_write_all(stream.fds[1], stream.text + at, n, HD_FOREVER), 0);
		if (next_random(&seed) % 8 == 0)
			CHECK_EQ(hd_sleep(HD_US(next_random(&seed) % 30)), 0);
		at += n;
	}
	CHECK_EQ(hd_close(stream.fds[1]), 0);
	return arg;
}

/* ---- a model ---- */

struct model {
	struct hd_reader reader;
	char buffer[BUFFER_MAX];
	size_t at; /* in the text */
	unsigned seed;
};

static size_t rest_of(const struct model *m)
{
	return stream.length - m->at;
}

/* n bytes were taken. */
static void took(struct model *m, const char *data, ssize_t n)
{
	CHECK(n >= 0 && (size_t)n <= rest_of(m));
	CHECK(memcmp(data, stream.text + m->at, (size_t)n) == 0);
	m->at += (size_t)n;
}

/* How long it is up to that byte; what is left, if that is not there. */
static size_t length_to(const struct model *m, char byte)
{
	const char *from = stream.text + m->at, *end = memchr(from, byte, rest_of(m));
	return end != NULL ? (size_t)(end + 1 - from) : rest_of(m);
}

/* Whether the answer is an error that has taken nothing. */
static bool is_called_off(ssize_t n)
{
	hd_cancel_clear();
	return n == -ETIMEDOUT || n == -ECANCELED;
}

static void take_line(struct model *m, hd_time until)
{
	char *line = NULL, expected[BUFFER_MAX + 1];
	ssize_t n = hd_reader_line(&m->reader, &line, until);
	size_t length = length_to(m, '\n');

	if (is_called_off(n))
		return;
	if (n == -EMSGSIZE) {
		CHECK(length > m->reader.size || (length == m->reader.size && stream.text[m->at + length - 1] != '\n'));
		return;
	}
	CHECK_EQ(n, length);
	memcpy(expected, stream.text + m->at, length);
	if (length > 0 && expected[length - 1] == '\n' && --length > 0 && expected[length - 1] == '\r')
		length--;
	expected[length] = '\0';
	if (n > 0)
		CHECK_STR(line, expected);
	m->at += (size_t)n;
}

static void take_until(struct model *m, hd_time until)
{
	char *data = NULL, byte = (char)('a' + next_random(&m->seed) % 3);
	ssize_t n = hd_reader_until(&m->reader, byte, &data, until);
	size_t length = length_to(m, byte);

	if (is_called_off(n))
		return;
	if (n == -EMSGSIZE) {
		CHECK(length >= m->reader.size);
		return;
	}
	CHECK_EQ(n, length);
	took(m, data, n);
}

static void take_exactly(struct model *m, hd_time until)
{
	char *data = NULL;
	size_t wanted = next_random(&m->seed) % (m->reader.size + 2);
	ssize_t n = hd_reader_exactly(&m->reader, wanted, &data, until);

	if (is_called_off(n))
		return;
	if (wanted > m->reader.size) {
		CHECK_EQ(n, -EMSGSIZE);
		return;
	}
	CHECK_EQ(n, wanted < rest_of(m) ? wanted : rest_of(m));
	took(m, data, n);
}

static void peek_and_skip(struct model *m, hd_time until)
{
	char *data = NULL;
	size_t wanted = next_random(&m->seed) % (m->reader.size + 1), skipped = next_random(&m->seed) % (m->reader.size + 1);
	ssize_t n = hd_reader_peek(&m->reader, wanted, &data, until);

	if (is_called_off(n))
		return;
	CHECK(n >= (ssize_t)wanted || n == (ssize_t)rest_of(m));
	CHECK(memcmp(data, stream.text + m->at, (size_t)n) == 0);
	if (skipped > (size_t)n)
		skipped = (size_t)n;
	CHECK_EQ(hd_reader_skip(&m->reader, skipped), skipped);
	m->at += skipped;
}

static void take_copy(struct model *m, hd_time until)
{
	char data[2 * BUFFER_MAX];
	size_t wanted = 1 + next_random(&m->seed) % sizeof data;
	ssize_t n = hd_reader_read(&m->reader, data, wanted, until);

	if (is_called_off(n))
		return;
	CHECK(n > 0 || rest_of(m) == 0);
	CHECK(n <= (ssize_t)wanted);
	took(m, data, n);
}

static void take_full_copy(struct model *m, hd_time until)
{
	char data[2 * BUFFER_MAX];
	size_t wanted = 1 + next_random(&m->seed) % sizeof data;
	ssize_t n = hd_reader_read_full(&m->reader, data, wanted, until);

	bool was_free = until == HD_FOREVER && hd_cancel_clear() == 0; /* or it may have been called off in the middle */
	if (is_called_off(n))
		return;
	CHECK(n > 0 || rest_of(m) == 0);
	CHECK(n <= (ssize_t)wanted && (n == (ssize_t)wanted || n == (ssize_t)rest_of(m) || !was_free));
	took(m, data, n);
}

static void *read_as_model(void *arg)
{
	static void (*const ways[])(struct model * m, hd_time until) = { take_line,	take_until, take_exactly,
									 peek_and_skip, take_copy,  take_full_copy };
	unsigned seed = (unsigned)(uintptr_t)arg;
	static struct model m;

	m = (struct model){ .seed = seed };
	hd_reader_init(&m.reader, stream.fds[0], m.buffer, 4 + seed % (BUFFER_MAX - 4));
	while (rest_of(&m) > 0) {
		unsigned kind = next_random(&m.seed) % 4;
		hd_time until = kind == 0 ? 0 : kind == 1 ? hd_after(HD_US(next_random(&m.seed) % 30)) : HD_FOREVER;
		ways[next_random(&m.seed) % 6](&m, until);
	}
	char *line;
	ssize_t n;
	while (is_called_off(n = hd_reader_line(&m.reader, &line, HD_FOREVER)))
		;
	CHECK_EQ(n, 0);
	CHECK_EQ(hd_close(stream.fds[0]), 0);
	return NULL;
}

HD_WORKERS_TEST(reader_takes_each_byte_once)
{
	for (unsigned round = 0; round < 4; round++) {
		make_stream(round + (unsigned)workers);
		hd_pid writer = spawned(hd_spawn(write_pieces, NULL)),
		       reader = spawned(hd_spawn(read_as_model, (void *)(long)(7 * round + 1)));
		unsigned seed = round;
		for (int i = 0; i < 30; i++) {
			ANY_ANSWER(hd_cancel(reader));
			CHECK_EQ(hd_sleep(HD_US(next_random(&seed) % 40)), 0);
		}
		CHECK_EQ(hd_join(reader, NULL, HD_FOREVER), 0);
		CHECK_EQ(hd_join(writer, NULL, HD_FOREVER), 0);
	}
}

/* ---- the edges, one by one ---- */

static void give(int fd, const char *text)
{
	CHECK_EQ(hd_write_all(fd, text, strlen(text), HD_FOREVER), 0);
}

HD_PROCESS_TEST(reader_answers_lines)
{
	struct hd_reader r;
	char buffer[8], *line;
	int fds[2];

	CHECK_EQ(hd_pipe(fds), 0);
	hd_reader_init(&r, fds[0], buffer, sizeof buffer);
	give(fds[1], "a\n\n\r\nb\r\n");
	CHECK_EQ(hd_reader_line(&r, &line, HD_FOREVER), 2);
	CHECK_STR(line, "a");
	CHECK_EQ(hd_reader_line(&r, &line, HD_FOREVER), 1);
	CHECK_STR(line, "");
	CHECK_EQ(hd_reader_line(&r, &line, HD_FOREVER), 2);
	CHECK_STR(line, "");
	CHECK_EQ(hd_reader_line(&r, &line, HD_FOREVER), 3);
	CHECK_STR(line, "b");
	CHECK_EQ(hd_reader_line(&r, &line, 0), -ETIMEDOUT);
	give(fds[1], "half");
	CHECK_EQ(hd_reader_line(&r, &line, 0), -ETIMEDOUT);
	give(fds[1], "123\n"); /* as long as the buffer */
	CHECK_EQ(hd_reader_line(&r, &line, HD_FOREVER), 8);
	CHECK_STR(line, "half123");
	give(fds[1], "too long\n");
	for (int i = 0; i < 2; i++)
		CHECK_EQ(hd_reader_line(&r, &line, HD_FOREVER), -EMSGSIZE);
	CHECK_EQ(hd_reader_skip(&r, 4), 4);
	CHECK_EQ(hd_reader_line(&r, &line, HD_FOREVER), 5);
	CHECK_STR(line, "long");
	give(fds[1], "abcde\nla"); /* as long as the buffer */
	CHECK_EQ(hd_reader_line(&r, &line, HD_FOREVER), 6);
	CHECK_STR(line, "abcde");
	give(fds[1], "st");
	CHECK_EQ(hd_close(fds[1]), 0);
	CHECK_EQ(hd_reader_line(&r, &line, HD_FOREVER), 4);
	CHECK_STR(line, "last");
	CHECK_EQ(hd_reader_line(&r, &line, HD_FOREVER), 0);
	CHECK_EQ(hd_close(fds[0]), 0);
	CHECK_EQ(hd_reader_line(&r, &line, HD_FOREVER), -EBADF);
}

static void *read_line(void *arg)
{
	char *line;
	return (void *)(long)hd_reader_line(arg, &line, HD_FOREVER);
}

/* A process that is cancelled or terminated in the middle of a line leaves it to the next one. */
HD_WORKERS_TEST(reader_keeps_what_was_read)
{
	struct hd_reader r;
	char buffer[16], *line;
	void *result;
	int fds[2];

	CHECK_EQ(hd_pipe(fds), 0);
	hd_reader_init(&r, fds[0], buffer, sizeof buffer);
	for (int i = 0; i < 2; i++) {
		hd_pid pid = spawned(hd_spawn(read_line, &r));
		give(fds[1], "ab");
		while (info_on(pid).why != HD_WAIT_FD_READ)
			CHECK_EQ(hd_sleep(HD_US(50)), 0);
		CHECK_EQ(i == 0 ? hd_cancel(pid) : hd_terminate(pid, HD_FOREVER), 0);
		CHECK_EQ(hd_join(pid, &result, HD_FOREVER), 0);
	}
	give(fds[1], "c\n");
	CHECK_EQ(hd_reader_line(&r, &line, HD_FOREVER), 6);
	CHECK_STR(line, "ababc");
	CHECK_EQ(hd_close(fds[0]), 0);
	CHECK_EQ(hd_close(fds[1]), 0);
	(void)workers;
}
