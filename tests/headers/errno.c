/* headers/errno.c - a file that knows nothing of heddle, compiled with -include heddle/errno.h, with and without HD_KEEP_ERRNO. */
#include <errno.h>
#include <string.h>

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

int main(void)
{
	errno = ERANGE;
#ifdef HD_KEEP_ERRNO
	if (strcmp(TEXT(errno), "(*hd_errno())") == 0)
		return 1;
#else
	if (strcmp(TEXT(errno), "(*hd_errno())") != 0)
		return 1;
#endif
	return *hd_errno() == ERANGE ? 0 : 1;
}
