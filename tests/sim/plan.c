/* Plans as text: what is printed is what is read, and nothing else is. */
#include "sim/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/harness.h"

#define TEXT_MAX (HD__SIM_LIST_MAX * 16)

static struct hd__sim_plan plan;
static char text[TEXT_MAX];

static const char *formatted(void)
{
	CHECK(hd__sim_format(&plan, text, sizeof text));
	return text;
}

/* Every policy, every option, the ends of their ranges: in the order in which they are printed. */
HD_TEST(plan_is_printed_as_it_is_read)
{
	static const char *const texts[] = {
		"random:0",
		"random:1",
		"random:18446744073709551615",
		"pct:1:0:0",
		"pct:3:40:7",
		"pct:255:4294967295:18446744073709551615",
		"robin",
		"list:",
		"list:0=0",
		"list:0=1",
		"list:0=1,1=1,2=255",
		"list:7=2,4294967295=63",
		"random:1:workers=1",
		"random:1:workers=255",
		"random:1:steps=1",
		"random:1:steps=4294967295",
		"random:1:leaks=0",
		"random:1:fail=alloc",
		"random:1:fail=map",
		"random:1:fail=guard",
		"random:1:fail=time",
		"random:1:fail=alloc+time",
		"random:1:fail=alloc+map+guard+time",
		"random:1:fail=map:at=1",
		"random:1:fail=map:at=4294967295",
		"random:1:fail=map:from=1",
		"random:1:fail=map:from=4294967295",
		"robin:workers=2:leaks=0",
		"list:3=1:workers=3",
		"list::workers=3",
		"pct:2:9:5:workers=2:steps=77:leaks=0:fail=alloc+map:from=3",
		"list:1=1,5=2:workers=2:steps=77:leaks=0:fail=guard+time:at=3",
	};

	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		if (!hd__sim_parse(&plan, texts[i]))
			CHECK_STR("refused", texts[i]);
		CHECK_STR(formatted(), texts[i]);
	}
}

/* What may be written in more than one way has one way to be printed. */
HD_TEST(plan_is_printed_in_one_way)
{
	static const struct {
		const char *read, *printed;
	} texts[] = {
		{ "5", "random:5" },
		{ "0", "random:0" },
		{ "007", "random:7" },
		{ "18446744073709551615", "random:18446744073709551615" },
		{ "5:workers=2", "random:5:workers=2" },
		{ "1:fail=time+alloc", "random:1:fail=alloc+time" },
		{ "1:fail=time,alloc", "random:1:fail=alloc+time" },
		{ "1:fail=map+map", "random:1:fail=map" },
		{ "1:at=2:fail=map", "random:1:fail=map:at=2" },
		{ "1:leaks=0:workers=3", "random:1:workers=3:leaks=0" },
		{ "robin:steps=9:workers=08", "robin:workers=8:steps=9" },
	};

	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		if (!hd__sim_parse(&plan, texts[i].read))
			CHECK_STR("refused", texts[i].read);
		CHECK_STR(formatted(), texts[i].printed);
	}
}

HD_TEST(plan_that_is_none_is_refused)
{
	static const char *const texts[] = {
		"",
		":",
		" 1",
		"1 ",
		"+1",
		"-1",
		"0x10",
		"1.5",
		"1,2",
		"one",
		"seed",
		"18446744073709551616",
		"99999999999999999999999999",
		"random",
		"random:",
		"random: 1",
		"random:-1",
		"random:+1",
		"random:x",
		"random:1x",
		"random:1:",
		"random:18446744073709551616",
		"Random:1",
		"pct",
		"pct:",
		"pct:1",
		"pct:1:",
		"pct:1:2",
		"pct:1:2:",
		"pct:1:2:3:",
		"pct:1:2:3:4",
		"pct:0:2:3",
		"pct:256:2:3",
		"pct:-1:2:3",
		"pct:1:4294967296:3",
		"pct:1:2:18446744073709551616",
		"pct::2:3",
		"pct:1::3",
		"pct:1:2:x",
		"robi",
		"robin:",
		"robin1",
		"robin:1",
		"list",
		"list:1",
		"list:1=",
		"list:=1",
		"list:,",
		"list:,1=1",
		"list:1=1,",
		"list:1=1,,2=1",
		"list:1=1;2=1",
		"list:1=1 ,2=1",
		"list:1=x",
		"list:x=1",
		"list:-1=1",
		"list:1=-1",
		"list:1=256",
		"list:1=65536",
		"list:4294967296=1",
		"list:1=99999999999999999999999999",
		"list:99999999999999999999999999=1",
		"list:2=1,1=1", /* not in order */
		"list:1=1,1=2", /* one decision, two options */
		"list:1=1:",
		"1:workers",
		"1:workers=",
		"1:workers=0",
		"1:workers=256",
		"1:workers=-1",
		"1:workers=x",
		"1:workers=2x",
		"1:workers=2,3",
		"1:Workers=2",
		"1:steps=",
		"1:steps=0",
		"1:steps=4294967296",
		"1:steps=1e3",
		"1:leaks",
		"1:leaks=",
		"1:leaks=1",
		"1:leaks=00",
		"1:leaks=0x",
		"1:fail",
		"1:fail=",
		"1:fail=+",
		"1:fail=all",
		"1:fail=allocs",
		"1:fail=allo",
		"1:fail=alloc+",
		"1:fail=+alloc",
		"1:fail=alloc++map",
		"1:fail=alloc map",
		"1:fail=ALLOC",
		"1:fail=map:at",
		"1:fail=map:at=",
		"1:fail=map:at=0",
		"1:fail=map:at=4294967296",
		"1:fail=map:from=",
		"1:fail=map:from=0",
		"1:fail=map:from=4294967296",
		"1:fail=map:rom=1",
		"1:at=3", /* of what? */
		"1:from=3",
		"1:nonsense=1",
		"1:workers=2:",
		"1::workers=2",
		"1:workers=2 ",
		"1\n",
	};

	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		if (hd__sim_parse(&plan, texts[i]))
			CHECK_STR("accepted", texts[i]);
}

/* Nothing of the plan before is left in the next. */
HD_TEST(plan_begins_with_the_defaults)
{
	memset(&plan, 0xff, sizeof plan);
	CHECK(hd__sim_parse(&plan, "robin"));
	CHECK_STR(formatted(), "robin");
	CHECK_EQ(plan.workers, 0);
	CHECK_EQ(plan.depth, 0);
	CHECK_EQ(plan.faults, 0);
	CHECK_EQ(plan.fail_at, 0);
	CHECK(!plan.fail_on);
	CHECK(!plan.ignore_leaks);
	CHECK_EQ(plan.steps, 0);
	CHECK_EQ(plan.seed, 0);
	CHECK_EQ(plan.unusual, 0);
}

/* list:0=1,1=1,... of so many. */
static void write_list(unsigned n)
{
	size_t length = (size_t)sprintf(text, "list:");

	for (unsigned i = 0; i < n; i++)
		length += (size_t)sprintf(text + length, "%s%u=1", i > 0 ? "," : "", i);
}

HD_TEST(plan_has_room_for_so_many_unusual_options_and_no_more)
{
	static char copy[TEXT_MAX];

	write_list(HD__SIM_LIST_MAX);
	CHECK(hd__sim_parse(&plan, text));
	CHECK_EQ(plan.unusual, HD__SIM_LIST_MAX);
	CHECK_EQ(plan.list[HD__SIM_LIST_MAX - 1].at, HD__SIM_LIST_MAX - 1);
	strcpy(copy, text);
	CHECK_STR(formatted(), copy);
	write_list(HD__SIM_LIST_MAX + 1);
	CHECK(!hd__sim_parse(&plan, text));
}

/* The explorer's buffer has room for any plan. */
HD_TEST(plan_of_the_greatest_length_is_printed)
{
	plan = (struct hd__sim_plan){ .policy = HD__SIM_LIST,
				      .workers = HD__SIM_WORKERS_MAX,
				      .steps = UINT32_MAX,
				      .faults = 15,
				      .fail_on = true,
				      .fail_at = UINT32_MAX,
				      .ignore_leaks = true,
				      .unusual = HD__SIM_LIST_MAX };
	for (uint32_t i = 0; i < plan.unusual; i++)
		plan.list[i] = (struct hd__sim_unusual){ UINT32_MAX - plan.unusual + 1 + i, UINT8_MAX };
	CHECK(hd__sim_parse(&plan, formatted()));
	CHECK_EQ(plan.unusual, HD__SIM_LIST_MAX);
	CHECK_EQ(plan.fail_at, UINT32_MAX);
}

/* For each size that is too small it says so, writes no byte too many, and ends what it wrote. */
HD_TEST(plan_that_does_not_fit_is_not_printed)
{
	static const char whole[] = "list:1=1,200=2:workers=2:steps=77:leaks=0:fail=guard+time:from=3";
	char small[sizeof whole + 1];

	CHECK(hd__sim_parse(&plan, whole));
	for (size_t size = 0; size < sizeof whole; size++) {
		memset(small, '#', sizeof small);
		CHECK(!hd__sim_format(&plan, small, size));
		CHECK_EQ(small[size], '#');
		CHECK(size == 0 || memchr(small, 0, size) != NULL);
	}
	memset(small, '#', sizeof small);
	CHECK(hd__sim_format(&plan, small, sizeof whole));
	CHECK_STR(small, whole);
	CHECK_EQ(small[sizeof whole], '#');
}

HD_TEST(plan_faults_have_names)
{
	static const struct {
		const char *names;
		unsigned bits;
	} texts[] = {
		{ "alloc", HD__SIM_FAIL_ALLOC },
		{ "map", HD__SIM_FAIL_MAP },
		{ "guard", HD__SIM_FAIL_GUARD },
		{ "time", HD__SIM_FAIL_TIME },
		{ "alloc,map", HD__SIM_FAIL_ALLOC | HD__SIM_FAIL_MAP },
		{ "time+alloc", HD__SIM_FAIL_ALLOC | HD__SIM_FAIL_TIME },
		{ "alloc+map,guard+time", 15 },
		{ "", 0 },
		{ ",", 0 },
		{ "alloc,", 0 },
		{ ",alloc", 0 },
		{ "alloc,,map", 0 },
		{ "allocmap", 0 },
		{ "alloc map", 0 },
		{ "al", 0 },
		{ "nonsense", 0 },
		{ "alloc,nonsense", 0 },
	};

	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		CHECK_EQ(hd__sim_faults(texts[i].names, strlen(texts[i].names)), texts[i].bits);
	CHECK_EQ(hd__sim_faults("mapping", 3), HD__SIM_FAIL_MAP); /* no further than it was told to look */
	CHECK_EQ(hd__sim_faults("map+guard", 3), HD__SIM_FAIL_MAP);
	CHECK_EQ(hd__sim_faults("map+guard", 4), 0);
}
