/* home.c - where heddle is. */
#include "home.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

const struct home *find_home(void)
{
	static const struct home installed = { HEDDLE_INCLUDE, HEDDLE_LIB, HEDDLE_LIB "/heddle/libheddle-malloc.so",
					       HEDDLE_LIB "/heddle/heddle-lua" },
				 built = { HEDDLE_BUILT_INCLUDE, HEDDLE_BUILT "/src",
					   HEDDLE_BUILT "/tools/heddle/libheddle-malloc.so",
					   HEDDLE_BUILT "/tools/lua/heddle-lua" };
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

	self[n > 0 ? n : 0] = 0;
	return strncmp(self, HEDDLE_BUILT "/", sizeof HEDDLE_BUILT) == 0 ? &built : &installed;
}
