/* heddle/stream.h - readers and writers: streams that are read by lines and pieces, and written in large blocks.
 *
 * A reader and a writer each have a buffer in the program's own memory, and move it by hd_read and hd_write. A call that finds what it wants
 * in the buffer, or has room for it there, makes no system call, does not wait, and is no cancellation point; the others are as those of
 * heddle/io.h: they answer -ETIMEDOUT, -ECANCELED, -EBADF and their like. Nothing is lost then: what has been read stays in the reader, and what has
 * not been written in the writer, and the next call goes on. Any descriptor will do; process or plain thread. A reader and a writer are for one
 * process at a time. They hold nothing but the buffer: there is nothing to undo at the end, but what is in a writer must be flushed. */
#ifndef HEDDLE_STREAM_H
#define HEDDLE_STREAM_H

#include <heddle/base.h>
#include <heddle/io.h>

HD_BEGIN

/* A reader. All of it is private. */
struct hd_reader {
	int fd;
	char *buffer;
	size_t size, begin, end; /* what has been read and not taken stands from begin to end */
};

/* A reader of fd with this buffer. What the calls below answer in *line and *data lies in the buffer, and is good until the next call on the
 * reader. */
HD_API void hd_reader_init(struct hd_reader *r, int fd, void *buffer, size_t size);

/* Takes a line. *line is a string, without its newline ("\n" or "\r\n"). Returns how many bytes of the stream it was, with the newline: so an empty line is 1
 * or 2; 0: at the end. The last line may have no newline. -EMSGSIZE: the line does not fit into the buffer; nothing is taken, and the
 * beginning can be had by hd_reader_read. */
HD_API HD_MUST_USE ssize_t hd_reader_line(struct hd_reader *r, char **line, hd_time until);

/* Takes all up to and including a byte. Returns how many bytes *data has: without that byte, what was left at the end; 0: at the end. -EMSGSIZE: as
 * hd_reader_line. */
HD_API HD_MUST_USE ssize_t hd_reader_until(struct hd_reader *r, char byte, char **data, hd_time until);

/* Takes n bytes, or none. Returns n; less: what was left at the end. -EMSGSIZE: n is more than the buffer's size. */
HD_API HD_MUST_USE ssize_t hd_reader_exactly(struct hd_reader *r, size_t n, char **data, hd_time until);

/* Waits until n bytes are in the buffer, and takes none. Returns how many there are, n or more; less at the end. -EMSGSIZE: n is more than the
 * buffer's size. With n 0 it does not wait. */
HD_API HD_MUST_USE ssize_t hd_reader_peek(struct hd_reader *r, size_t n, char **data, hd_time until);

/* Takes n bytes of those in the buffer, or all if they are less. Returns how many. Does not wait. */
HD_API size_t hd_reader_skip(struct hd_reader *r, size_t n);

/* Reads at most n bytes into memory of the caller's, as hd_read; exactly n, as hd_read_full. */
HD_API HD_MUST_USE ssize_t hd_reader_read(struct hd_reader *r, void *data, size_t n, hd_time until);
HD_API HD_MUST_USE ssize_t hd_reader_read_full(struct hd_reader *r, void *data, size_t n, hd_time until);

/* A writer. All of it is private. */
struct hd_writer {
	int fd;
	int err; /* that it keeps */
	char *buffer;
	size_t size, begin, end; /* what has been put and not written stands from begin to end */
};

/* A writer to fd with this buffer. A writer keeps its first error, and after it takes and writes nothing: each call answers the same. So a
 * program may put many times and look only at what hd_writer_flush answers. */
HD_API void hd_writer_init(struct hd_writer *w, int fd, void *buffer, size_t size);

/* Puts n bytes; writes if there is no room for them. Returns 0, or an error, which the writer keeps. Then none of them was put, if n is not more than
 * the buffer's size; of more, some may have been written. */
HD_API int hd_writer_put(struct hd_writer *w, const void *data, size_t n, hd_time until);

/* Puts what printf(3) would print. Returns 0, or an error, which the writer keeps, and nothing was put; -EMSGSIZE: it is as long as the buffer, or
 * longer. */
HD_API int hd_writer_printf(struct hd_writer *w, hd_time until, const char *format, ...) HD_PRINTF(3, 4);

/* Writes what was put. Returns 0; the error that the writer keeps; -ETIMEDOUT or -ECANCELED, which it does not keep: what was not written
 * is there still, and hd_writer_flush can be called again. */
HD_API HD_MUST_USE int hd_writer_flush(struct hd_writer *w, hd_time until);

/* Forgets the error that the writer keeps, and not what it holds. Returns it; 0: none. A put that came too late can be repeated then. Does not
 * wait. */
HD_API int hd_writer_clear(struct hd_writer *w);

HD_END
#endif
