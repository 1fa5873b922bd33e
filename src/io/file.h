/* io/file.h - reading and writing files, for io/stream.c. */
#ifndef IO_FILE_H
#define IO_FILE_H

#include "io/fd.h"

/* Moves all of op->iov that is still to be moved, at this place of the file (-1: where the open file is), unless the end of the file or an
 * error comes: a count, 0 at the end, -errno; -ECANCELED: hd__heed must follow. In the caller's turn, or use; op->f->how is known. */
ssize_t hd__file_move(const struct hd__op *op, int64_t offset);

/* Makes a call about a descriptor that is ready, and may make the caller wait nevertheless, on a thread of the pool: -EAGAIN: it is not ready. In
 * the caller's turn. */
ssize_t hd__op_on_thread(struct hd__op *op, ssize_t (*make)(struct hd__op *op));

#endif
