/* io/reader.c - a stream that is read by lines and pieces.
 *
 * Owns:       struct hd_reader.
 * Invariant:  begin <= end <= size. Only what is answered is taken: a call that fails has moved nothing but bytes from the kernel to
 *             the end of the buffer. */
#include <errno.h>
#include <heddle/stream.h>
#include <string.h>

void hd_reader_init(struct hd_reader *r, int fd, void *buffer, size_t size)
{
	*r = (struct hd_reader){ .fd = fd, .buffer = buffer, .size = size };
}

static size_t held(const struct hd_reader *r)
{
	return r->end - r->begin;
}

static void move_to_front(struct hd_reader *r)
{
	if (r->begin > 0) {
		memmove(r->buffer, r->buffer + r->begin, held(r));
		r->end -= r->begin;
		r->begin = 0;
	}
}

/* Reads what comes into the buffer. Returns how much; 0: at the end; -EMSGSIZE: there is no room. */
static ssize_t fill(struct hd_reader *r, hd_time until)
{
	if (held(r) == 0 || r->size - r->end < r->size / 2) /* or reads would become small */
		move_to_front(r);
	if (r->end == r->size)
		return -EMSGSIZE;
	ssize_t n = hd_read(r->fd, r->buffer + r->end, r->size - r->end, until);
	if (n > 0)
		r->end += (size_t)n;
	return n;
}

static char *take(struct hd_reader *r, size_t n)
{
	char *data = r->buffer + r->begin;

	r->begin += n;
	return data;
}

/* How many bytes there are up to that byte, or, at the end, in all. */
static ssize_t find(struct hd_reader *r, char byte, hd_time until)
{
	for (size_t seen = 0;;) {
		const char *from = r->buffer + r->begin, *at = memchr(from + seen, byte, held(r) - seen);
		if (at != NULL)
			return at + 1 - from;
		seen = held(r);
		ssize_t n = fill(r, until);
		if (n <= 0)
			return n < 0 ? n : (ssize_t)seen;
	}
}

ssize_t hd_reader_line(struct hd_reader *r, char **line, hd_time until)
{
	ssize_t n = find(r, '\n', until);

	if (n <= 0)
		return n;
	*line = take(r, (size_t)n);
	char *end =
		*line + n; /* without a newline it is the last one, and `fill` has found room behind it, but no more bytes */
	if (end[-1] == '\n' && --end > *line && end[-1] == '\r')
		end--;
	*end = '\0';
	return n;
}

ssize_t hd_reader_until(struct hd_reader *r, char byte, char **data, hd_time until)
{
	ssize_t n = find(r, byte, until);

	if (n > 0)
		*data = take(r, (size_t)n);
	return n;
}

ssize_t hd_reader_peek(struct hd_reader *r, size_t n, char **data, hd_time until)
{
	if (n > r->size)
		return -EMSGSIZE;
	while (held(r) < n) {
		ssize_t more = fill(r, until);
		if (more < 0)
			return more;
		if (more == 0)
			break;
	}
	*data = r->buffer + r->begin;
	return (ssize_t)held(r);
}

ssize_t hd_reader_exactly(struct hd_reader *r, size_t n, char **data, hd_time until)
{
	ssize_t there = hd_reader_peek(r, n, data, until);

	if (there > (ssize_t)n)
		there = (ssize_t)n;
	if (there > 0)
		take(r, (size_t)there);
	return there;
}

size_t hd_reader_skip(struct hd_reader *r, size_t n)
{
	if (n > held(r))
		n = held(r);
	take(r, n);
	return n;
}

static size_t copy(struct hd_reader *r, void *data, size_t n)
{
	if (n > held(r))
		n = held(r);
	if (n > 0)
		memcpy(data, take(r, n), n);
	return n;
}

ssize_t hd_reader_read(struct hd_reader *r, void *data, size_t n, hd_time until)
{
	if (held(r) == 0 && n >= r->size)
		return hd_read(r->fd, data, n, until);
	if (held(r) == 0 && n > 0) {
		ssize_t more = fill(r, until);
		if (more <= 0)
			return more;
	}
	return (ssize_t)copy(r, data, n);
}

ssize_t hd_reader_read_full(struct hd_reader *r, void *data, size_t n, hd_time until)
{
	size_t had = copy(r, data, n);

	if (had == n)
		return (ssize_t)n;
	ssize_t more = hd_read_full(r->fd, (char *)data + had, n - had, until);
	if (more < 0)
		return had > 0 ? (ssize_t)had : more;
	return (ssize_t)had + more;
}
