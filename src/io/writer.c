/* io/writer.c - a stream that is written in large blocks.
 *
 * Owns:       struct hd_writer.
 * Invariant:  begin <= end <= size. What was put is written in its order, once; when a put has failed, and so a piece is missing, nothing
 *             more is written until the program says so. */
#include <errno.h>
#include <heddle/stream.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void hd_writer_init(struct hd_writer *w, int fd, void *buffer, size_t size)
{
	*w = (struct hd_writer){ .fd = fd, .buffer = buffer, .size = size };
}

static size_t held(const struct hd_writer *w)
{
	return w->end - w->begin;
}

/* Writes until there is room for n bytes, or nothing is held. Returns 0; an error, and what was not written is held. */
static int make_room(struct hd_writer *w, size_t n, hd_time until)
{
	while (held(w) > 0 && w->size - held(w) < n) {
		ssize_t written = hd_write(w->fd, w->buffer + w->begin, held(w), until);
		if (written < 0)
			return (int)written;
		w->begin += (size_t)written;
	}
	if (w->begin > 0 && w->size - w->end < n) {
		memmove(w->buffer, w->buffer + w->begin, held(w));
		w->end -= w->begin;
		w->begin = 0;
	}
	return 0;
}

static int keep(struct hd_writer *w, int err)
{
	return w->err = err;
}

int hd_writer_put(struct hd_writer *w, const void *data, size_t n, hd_time until)
{
	if (w->err != 0)
		return w->err;
	int err = make_room(w, n, until);
	if (err == 0 && n > w->size)
		err = hd_write_all(w->fd, data, n, until);
	else if (err == 0 && n > 0) {
		memcpy(w->buffer + w->end, data, n);
		w->end += n;
	}
	return keep(w, err);
}

/* Answers as vsnprintf, into what room there is; errno is left alone. */
HD_PRINTF(2, 0) static int print(struct hd_writer *w, const char *format, va_list arguments)
{
	int saved = errno, n;
	va_list copy;

	va_copy(copy, arguments);
	n = vsnprintf(w->buffer + w->end, w->size - w->end, format, copy);
	va_end(copy);
	errno = saved;
	return n;
}

HD_PRINTF(3, 0) static int put_formatted(struct hd_writer *w, hd_time until, const char *format, va_list arguments)
{
	int n = print(w, format, arguments), err = 0;

	if (n >= 0 && (size_t)n >= w->size)
		return -EMSGSIZE;
	if (n >= 0 && (size_t)n >= w->size - w->end) { /* it did not fit, with the zero byte */
		err = make_room(w, (size_t)n + 1, until);
		if (err == 0)
			n = print(w, format, arguments);
	}
	if (err != 0 || n < 0)
		return err != 0 ? err : -EINVAL;
	w->end += (size_t)n;
	return 0;
}

int hd_writer_printf(struct hd_writer *w, hd_time until, const char *format, ...)
{
	va_list arguments;

	if (w->err != 0)
		return w->err;
	va_start(arguments, format);
	int err = put_formatted(w, until, format, arguments);
	va_end(arguments);
	return keep(w, err);
}

int hd_writer_flush(struct hd_writer *w, hd_time until)
{
	if (w->err != 0)
		return w->err;
	int err = make_room(w, w->size, until);
	return err == -ETIMEDOUT || err == -ECANCELED ? err : keep(w, err);
}

int hd_writer_clear(struct hd_writer *w)
{
	int err = w->err;

	w->err = 0;
	return err;
}
