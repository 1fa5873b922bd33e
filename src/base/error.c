/* base/error.c - what an error of heddle's means. */
#include <errno.h>
#include <heddle/name.h>
#include <netdb.h>
#include <string.h>

#define RESOLVERS (-(unsigned)HD_EAI(0)) /* where the resolver's errors begin */
#define EAI_CODES 200

/* NULL: it is none of heddle's. */
static const char *words_for(unsigned err)
{
	switch (err) {
	case 0:
		return "no error";
	case EAGAIN:
		return "it would have to wait, or there are too many processes or kernel threads";
	case EALREADY:
		return "that has happened already";
	case EBUSY:
		return "another process or thread does it already";
	case ECANCELED:
		return "the caller was cancelled";
	case EDEADLK:
		return "it would wait for itself, or no process can ever run again";
	case EINPROGRESS:
		return "it was asked for, and has not happened yet";
	case EINVAL:
		return "an argument is out of range, or a duration stands where a time is wanted";
	case ENAMETOOLONG:
		return "the name is too long";
	case ENOMEM:
		return "there is no memory";
	case ENOTRECOVERABLE:
		return "a process has failed too often to be started again";
	case ENOTSUP:
		return "only a process can call this, and the caller is a plain thread";
	case ENXIO:
		return "no runtime runs";
	case EOVERFLOW:
		return "the number does not fit";
	case EOWNERDEAD:
		return "the process was terminated before it had done it";
	case EPERM:
		return "the caller is not the owner";
	case EPIPE:
		return "it is closed";
	case ESHUTDOWN:
		return "the runtime is ending";
	case ESRCH:
		return "there is no such process, or not any more";
	case ETIMEDOUT:
		return "time was up";
	default:
		return NULL;
	}
}

/* The C library's words for a number that it knows are constant; for another one it would write into a buffer that threads share. */
const char *hd_error(int err)
{
	unsigned number = err < 0 ? -(unsigned)err : (unsigned)err;
	const char *words = words_for(number);

	if (number > RESOLVERS && number <= RESOLVERS + EAI_CODES)
		return gai_strerror(-(int)(number - RESOLVERS));
	if (words == NULL)
		words = number <= EHWPOISON ? strerror((int)number) : "an unknown error";
	return words;
}
