/* os/source.c - the function, file and line of an address. */
#include "os/source.h"

#include <string.h>

#include "harness/harness.h"

__attribute__((noinline)) static void look(struct hd__source *place)
{
	place->address = (uintptr_t)__builtin_return_address(0);
	hd__os_find_sources(place, 1);
}

HD_TEST(source_of_a_call_is_its_function_file_and_line)
{
	struct hd__source place;
	int line = __LINE__ + 1;
	look(&place);

	CHECK_STR(place.function, "source_of_a_call_is_its_function_file_and_line");
	CHECK_STR(place.file, "source.c");
	CHECK_EQ(place.line, line);
	CHECK(strstr(place.directory, "tests/os") != NULL);
	CHECK(strstr(place.module, "tests") != NULL);
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

/* A line that is far above the one before it: the table goes back by a negative number. The last test here, because of its lines. */
HD_TEST(source_of_a_call_may_be_above_the_call_before)
{
	struct hd__source below, above;

#line 2000
	look(&below);
#line 1000
	look(&above);
	CHECK_EQ(below.line, 2000);
	CHECK_EQ(above.line, 1000);
}
