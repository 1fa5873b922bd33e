/* os/source.c - the function, file and line of an address. */
#include "os/source.h"

#include <execinfo.h>
#include <string.h>

#include "harness/harness.h"

__attribute__((noinline)) static int look(struct hd__source *places, int max)
{
	void *frames[8];
	int n = backtrace(frames, max < 8 ? max : 8);

	for (int i = 0; i < n; i++)
		places[i].address = (uintptr_t)frames[i];
	hd__os_find_sources(places, n);
	return n;
}

HD_TEST(source_of_a_call_is_its_function_file_and_line)
{
	struct hd__source places[8];
	int line = __LINE__ + 1;
	int n = look(places, 8);

	CHECK(n >= 2);
	CHECK_STR(places[0].function, "look");
	CHECK_STR(places[0].file, "source.c");
	CHECK_STR(places[1].function, "source_of_a_call_is_its_function_file_and_line");
	CHECK_STR(places[1].file, "source.c");
	CHECK_EQ(places[1].line, line);
	CHECK(strstr(places[1].directory, "tests/os") != NULL);
	CHECK(strstr(places[1].module, "tests") != NULL);
}

HD_TEST(source_of_no_code_is_unknown)
{
	struct hd__source places[] = {
		{ .address = 0 }, { .address = 1 }, { .address = (uintptr_t)&places }, { .address = UINTPTR_MAX }
	};

	hd__os_find_sources(places, 4);
	for (int i = 0; i < 4; i++) {
		CHECK_STR(places[i].function, "");
		CHECK_EQ(places[i].line, 0);
	}
}
