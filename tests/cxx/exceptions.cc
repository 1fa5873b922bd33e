/* cxx/exceptions.cc - C++ exceptions in processes: a process may wait, yield, move and end while it handles one.
 *
 * The C++ runtime keeps the exceptions that are being handled in thread-local variables. They must be the process's. */
#include <heddle.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>

#define CHECK(cond) ((cond) ? (void)0 : fail(__LINE__, #cond))

static void fail(int line, const char *what)
{
	std::fprintf(stderr, "exceptions.cc:%d: CHECK(%s)\n", line, what);
	std::abort();
}

static std::atomic<int> alive; /* exceptions */

struct Trouble {
	long whose, round;
	Trouble(long w, long r) : whose(w), round(r)
	{
		alive++;
	}
	Trouble(const Trouble &other) : whose(other.whose), round(other.round)
	{
		alive++;
	}
	~Trouble()
	{
		alive--;
	}
};

static hd_semaphore turns = HD_SEMAPHORE(1);

/* One of several ways to let other processes run. */
static void wait_somehow(long n)
{
	switch (n % 3) {
	case 0:
		hd_yield();
		break;
	case 1:
		hd_sleep(HD_US(10));
		break;
	default:
		CHECK(hd_semaphore_wait(&turns, HD_FOREVER) == 0);
		hd_yield();
		CHECK(hd_semaphore_signal(&turns) == 0);
	}
}

/* Waits while the stack is being unwound. */
struct Waiter {
	long n;
	~Waiter()
	{
		CHECK(std::uncaught_exceptions() == 1);
		wait_somehow(n);
		CHECK(std::uncaught_exceptions() == 1);
	}
};

static void throw_through_a_waiter(long whose, long round)
{
	Waiter waiter = { whose + round };
	throw Trouble(whose, round);
}

enum { ROUNDS = 30, PROCESSES = 24 };

static void *throw_and_wait(void *arg)
{
	long me = (long)arg;

	for (long i = 0; i < ROUNDS; i++) {
		try {
			throw_through_a_waiter(me, i);
		} catch (Trouble &outer) {
			wait_somehow(me + i);
			CHECK(outer.whose == me && outer.round == i);
			try {
				throw Trouble(me, -i);
			} catch (const Trouble &inner) {
				wait_somehow(me + i + 1);
				CHECK(inner.whose == me && inner.round == -i);
				CHECK(outer.whose == me && outer.round == i);
			}
			CHECK(std::uncaught_exceptions() == 0);
			try {
				wait_somehow(me + i + 2);
				throw; /* the outer one */
			} catch (Trouble &again) {
				CHECK(&again == &outer);
				wait_somehow(me + i);
				CHECK(again.whose == me && again.round == i);
			}
		}
		CHECK(!std::current_exception());
		hd_yield();
		CHECK(!std::current_exception());
	}
	return arg;
}

static void *exit_while_handling(void *arg)
{
	try {
		throw Trouble(1, 1);
	} catch (...) {
		try {
			throw Trouble(1, 2);
		} catch (...) {
			wait_somehow((long)arg);
			hd_exit(arg);
		}
	}
	return nullptr;
}

static hd_semaphore never;

static void *wait_while_handling(void *)
{
	try {
		throw Trouble(2, 1);
	} catch (...) {
		if (hd_semaphore_wait(&never, HD_FOREVER) == 0)
			return &never; // it is never signalled
	}
	return nullptr;
}

static void *look_for_exceptions(void *arg)
{
	CHECK(!std::current_exception() && std::uncaught_exceptions() == 0);
	return arg;
}

static void *all(void *arg)
{
	hd_pid pid[PROCESSES];

	CHECK(!std::current_exception());
	for (long i = 0; i < PROCESSES; i++)
		CHECK((pid[i] = hd_spawn(throw_and_wait, (void *)i)) > 0);
	for (long i = 0; i < PROCESSES; i++)
		CHECK(hd_join(pid[i], nullptr, HD_FOREVER) == 0);
	CHECK(alive == 1); /* main's own */

	for (long i = 0; i < PROCESSES; i++)
		CHECK((pid[i] = hd_spawn(i % 2 ? exit_while_handling : wait_while_handling, (void *)i)) > 0);
	for (long i = 0; i < PROCESSES; i++) {
		void *result;
		if (i % 2 == 0)
			CHECK(hd_terminate(pid[i], HD_FOREVER) == 0);
		CHECK(hd_join(pid[i], &result, HD_FOREVER) == 0);
		CHECK(i % 2 == 0 || result == (void *)i);
		CHECK(hd_join(hd_spawn(look_for_exceptions, nullptr), nullptr, HD_FOREVER) == 0);
	}
	CHECK(alive == 1); /* a process that ends while it handles exceptions has dropped them */
	return arg;
}

/* hd_run is called while the thread handles an exception: that stays the thread's. */
static void run_on(unsigned workers)
{
	hd_config config = {};

	config.workers = workers;
	config.fixed = true;
	try {
		throw Trouble(-1, workers);
	} catch (Trouble &mine) {
		CHECK(hd_run(&config, all, nullptr) == 0);
		CHECK(mine.whose == -1 && mine.round == (long)workers);
		try {
			throw;
		} catch (Trouble &again) {
			CHECK(&again == &mine);
		}
	}
	CHECK(alive == 0);
}

int main()
{
	run_on(1);
	run_on(2);
	run_on(8);
	return 0;
}
