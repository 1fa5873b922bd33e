/* harness/harness.h - what a test file includes.
 *
 * A test is a function that registers itself; its name is the property that it proves. Each runs in an OS process of its
 * own with a time limit, so it may crash, hang, change the environment or start a runtime without touching its neighbours.
 * The first failing check ends the test. */
#ifndef HARNESS_H
#define HARNESS_H

#include <stdbool.h>

/* A test of at most 10 s (HD_TEST_TIMEOUT=seconds overrides it). */
#define HD_TEST(name) HARNESS_REGISTER(name, HARNESS_TEST, 0, false)

/* A heavy test of at most 120 s; run by --stress only. */
#define HD_STRESS(name) HARNESS_REGISTER(name, HARNESS_STRESS, 0, false)

/* Passes only when it dies of SIGABRT and what it wrote contains `expected`. */
#define HD_TEST_DIES(name, expected) HARNESS_REGISTER(name, HARNESS_DIES, expected, false)

/* For the harness's own tests: as HD_TEST and HD_TEST_DIES, but run only when --only names it. */
#define HD_SPECIMEN(name) HARNESS_REGISTER(name, HARNESS_TEST, 0, true)
#define HD_SPECIMEN_DIES(name, expected) HARNESS_REGISTER(name, HARNESS_DIES, expected, true)

/* Checks work on any stack and on any thread: they need about 2 KiB. CHECK_EQ compares integers (or pointers), CHECK_STR
 * strings; both say what was got and what was expected. */
#define CHECK(cond) ((cond) ? (void)0 : harness_fail(__FILE__, __LINE__, "CHECK(" #cond ")"))
#define CHECK_EQ(got, expected) harness_check_eq(__FILE__, __LINE__, #got, #expected, (long long)(got), (long long)(expected))
#define CHECK_STR(got, expected) harness_check_str(__FILE__, __LINE__, #got, #expected, (got), (expected))

/* Makes a call whose answer does not matter to the test: random programs, and processes that may be cancelled at any moment. */
#define ANY_ANSWER(call) ((void)((call) == 0))

/* Ends the test, neither passed nor failed. */
#define SKIP(why) harness_skip(why)

/* A function that does what only heddle's own code may: it enters lanes or takes locks of the runtime, or is called where these are held. It stands with the
 * library's code (tools/own-section), so that no process is preempted inside; what it calls of the tests stands inside it. */
#define HD_AS_RUNTIME __attribute__((section("hd_text"), noinline, flatten, unused))

/* One text to write a trace into and to compare at the end; 64 KiB, from one kernel thread at a time. */
__attribute__((format(printf, 1, 2))) void trace(const char *fmt, ...);
const char *trace_text(void);
void trace_clear(void);

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HD_UNDER_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define HD_UNDER_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) && !defined(HD_UNDER_ASAN)
#define HD_UNDER_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__) && !defined(HD_UNDER_TSAN)
#define HD_UNDER_TSAN 1
#endif
#ifndef HD_UNDER_ASAN
#define HD_UNDER_ASAN 0
#endif
#ifndef HD_UNDER_TSAN
#define HD_UNDER_TSAN 0
#endif

/* A count for this build: the sanitizers are slow, and TSan knows no more than 8,128 fibers. HD_TEST_SCALE in the environment
 * divides it further, for an emulator. At least 1. */
int hd_scaled(int n);

/* Whether the CPU is qemu's, which has memory, threads and bugs of its own. */
bool hd_is_emulated(void);

/* Whether the runtime itself is simulated: time is virtual, and every atomic operation costs as much as a system call. */
bool hd_is_simulated(void);

/* Whether this OS process has a thread that the test did not start: TSan and emulators do. Then nothing is a deadlock. */
bool hd_is_haunted(void);

/* Below: what the macros and the harness's own files need. */

enum harness_kind { HARNESS_TEST, HARNESS_STRESS, HARNESS_DIES };

struct harness_test {
	const char *name, *expected, *file;
	enum harness_kind kind;
	bool hidden;
	void (*body)(void);
	struct harness_test *next; /* in the order of registration */
};

/* The tests, in the order of the files on the linker's command line and of the definitions in each. */
extern struct harness_test *harness_tests;

/* Set by --no-fork: a failing check then aborts, which is where a debugger wants to be. */
extern bool harness_abort_on_failure;

/* How a test's OS process says that it was skipped. */
#define HARNESS_SKIPPED 77

void harness_register(struct harness_test *test);
__attribute__((noreturn, cold)) void harness_fail(const char *file, int line, const char *what);
__attribute__((noreturn, cold)) void harness_skip(const char *why);
void harness_check_eq(const char *file, int line, const char *got_text, const char *expected_text, long long got,
		      long long expected);
void harness_check_str(const char *file, int line, const char *got_text, const char *expected_text, const char *got,
		       const char *expected);

/* Where tests run: on real threads, or under a plan (sim/threads.h); the build chooses. The world begins in the test's OS process
 * before its body, and ends after it. `round` is 0 unless --repeat; harness_world says how to get the same one again, as a prefix
 * to a command line. */
void harness_world_begin(int round);
void harness_world_end(void);
const char *harness_world(int round);

/* The runner: main without the name, so that the harness can be tested by itself. */
int harness_run(int argc, char **argv);

#define HARNESS_REGISTER(name_, kind_, expected_, hidden_)                                                                     \
	static void name_(void);                                                                                               \
	__attribute__((constructor)) static void name_##_register(void)                                                        \
	{                                                                                                                      \
		static struct harness_test test = { #name_, expected_, __FILE__, kind_, hidden_, name_, 0 };                   \
		harness_register(&test);                                                                                       \
	}                                                                                                                      \
	static void name_(void)

#endif
