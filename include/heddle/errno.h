/* heddle/errno.h - errno in a process that may go on on another kernel thread.
 *
 * `errno` belongs to a kernel thread, and a process may be on another one after every heddle call. heddle carries the value along; but
 * the C library says that the address of errno never changes, so a compiler may look it up once, and read the errno of the old thread
 * after the call. This header makes errno a call that no compiler may leave out. heddle.h includes it; a file that does not include
 * heddle.h, and whose functions use errno before and after a heddle call, is compiled with `-include heddle/errno.h`. Libraries that
 * are compiled without it are not changed by it.
 *
 * Do not keep the address of errno over a heddle call, and write `err = f(); errno = err;` rather than `errno = f()` if f calls heddle:
 * C does not say which side of an assignment is evaluated first. */
#ifndef HEDDLE_ERRNO_H
#define HEDDLE_ERRNO_H

#include <errno.h>
#include <heddle/base.h>

HD_BEGIN

/* Where the kernel thread that runs the caller has its errno. The answer holds until the caller's next heddle call. Any thread, any signal
 * handler. */
HD_API int *hd_errno(void);

/* In place of the C library's. A file that defines HD_KEEP_ERRNO first keeps the C library's: it is cheaper where errno is used often
 * and no process moves. */
#ifndef HD_KEEP_ERRNO
#undef errno
#define errno (*hd_errno())
#endif

HD_END
#endif
