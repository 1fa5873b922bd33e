/* harness/process.h - tests whose body is the first process of a runtime.
 *
 * HD_PROCESS_TEST(name) { ... } runs its body under hd_run with the defaults, whatever the environment says, and checks
 * that the runtime ended well. HD_PROCESS_TEST_WITH(name, .field = value, ...) sets fields of struct hd_config. */
#ifndef HARNESS_PROCESS_H
#define HARNESS_PROCESS_H

#include <heddle.h>

#include "harness/harness.h"

#define HD_PROCESS_TEST(name) HARNESS_PROCESS(HD_TEST, name, .fixed = true, .workers = 1)
#define HD_PROCESS_TEST_WITH(name, ...) HARNESS_PROCESS(HD_TEST, name, .fixed = true, .workers = 1, __VA_ARGS__)
#define HD_PROCESS_STRESS(name) HARNESS_PROCESS(HD_STRESS, name, .fixed = true, .workers = 1)

#define HARNESS_PROCESS(how, name, ...)                                                                                        \
	static void name##_body(void);                                                                                         \
	static void *name##_main(void *arg)                                                                                    \
	{                                                                                                                      \
		name##_body();                                                                                                 \
		return arg;                                                                                                    \
	}                                                                                                                      \
	how(name)                                                                                                              \
	{                                                                                                                      \
		const struct hd_config config = { __VA_ARGS__ };                                                               \
		CHECK_EQ(hd_run(&config, name##_main, NULL), 0);                                                               \
	}                                                                                                                      \
	static void name##_body(void)

#endif
