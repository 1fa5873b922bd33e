/* base/error.c - hd_error has words of heddle's for every error that a header promises. */
#include <errno.h>
#include <heddle.h>
#include <limits.h>
#include <string.h>

#include "harness/harness.h"

/* All -E... in include/heddle. */
static const int promised[] = { EAGAIN,	    EALREADY,	  EBUSY,  ECANCELED, EDEADLK, EINPROGRESS,
				EINVAL,	    ENAMETOOLONG, ENOMEM, ENOTSUP,   ENXIO,   EOVERFLOW,
				EOWNERDEAD, EPERM,	  EPIPE,  ESHUTDOWN, ESRCH,   ETIMEDOUT };

HD_TEST(error_has_words_of_its_own_for_what_heddle_answers)
{
	for (size_t i = 0; i < sizeof promised / sizeof promised[0]; i++) {
		const char *words = hd_error(-promised[i]);
		CHECK(strcmp(words, strerror(promised[i])) != 0);
		CHECK_EQ((long long)(intptr_t)hd_error(promised[i]), (long long)(intptr_t)words);
		for (size_t k = 0; k < i; k++)
			CHECK(strcmp(words, hd_error(promised[k])) != 0);
	}
	CHECK_STR(hd_error(-ESRCH), "there is no such process, or not any more");
}

HD_TEST(error_knows_other_numbers_too)
{
	CHECK_STR(hd_error(0), "no error");
	CHECK_STR(hd_error(-EIO), strerror(EIO));
	CHECK_STR(hd_error(ENOENT), strerror(ENOENT));
	CHECK_STR(hd_error(123456), "an unknown error");
	CHECK_STR(hd_error(INT_MIN), "an unknown error");
	CHECK_STR(hd_error(INT_MAX), "an unknown error");
}
