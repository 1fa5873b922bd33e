// boost_fiber.cc - the bench cases on Boost.Fiber: the round-robin scheduler on one kernel thread, the work-stealing one on
// several, which search all the time and never sleep (its default); 16 KiB pooled stacks.
//
// Ping-pong and ring use its unbuffered channel, skynet joins and leaves the sum in memory that the parent reads. Its buffered
// channel holds one item less than it is made for. It has one kind of mutex, and nothing to choose among channels.
#include <boost/fiber/all.hpp>

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "../harness.h"

namespace fibers = boost::fibers;
typedef fibers::unbuffered_channel<int> channel;

static const int crowd_size = 1000, fanout = 10;
static const long many = 1000000;

static const unsigned workers = bench_workers();

// The pool asks for stacks in growing blocks, here of at most 1024, so that it does not double gigabytes. It is not made for
// several threads: they take a lock.
static fibers::pooled_fixedsize_stack pool(16 * 1024, 32, 1024);
static std::mutex pool_mutex;

struct stacks {
	static std::unique_lock<std::mutex> lock()
	{
		return workers > 1 ? std::unique_lock<std::mutex>(pool_mutex) : std::unique_lock<std::mutex>();
	}
	boost::context::stack_context allocate()
	{
		auto locked = lock();
		return pool.allocate();
	}
	void deallocate(boost::context::stack_context &stack)
	{
		auto locked = lock();
		pool.deallocate(stack);
	}
};

template <typename Entry> static fibers::fiber spawn(Entry entry)
{
	return fibers::fiber(std::allocator_arg, stacks(), entry);
}

template <typename Entry> static double time_all(int count, Entry entry)
{
	std::vector<fibers::fiber> all;
	all.reserve(count);
	double start = bench_now();
	for (int i = 0; i < count; i++)
		all.push_back(spawn([=] { entry(i); }));
	for (auto &f : all)
		f.join();
	return bench_now() - start;
}

static double yield_among(int count, long n)
{
	return time_all(count, [=](int) {
		for (long i = n / count; i > 0; i--)
			boost::this_fiber::yield();
	});
}

static double yield_among_2(long n)
{
	return yield_among(2, n);
}

static double yield_among_crowd(long n)
{
	return yield_among(crowd_size, n);
}

static void yield2()
{
	bench_rate("yield2", yield_among_2, 2000);
}

static void yield1000()
{
	bench_rate("yield1000", yield_among_crowd, crowd_size);
}

// Each member takes the token from its own channel and gives it to the next one's; the caller puts it in at the start and
// the last member keeps it at the end.
static double pass_token(int count, long laps)
{
	std::vector<std::unique_ptr<channel>> links;
	for (int i = 0; i < count; i++)
		links.emplace_back(new channel);
	fibers::fiber starter = spawn([&] { links[0]->push(1); });
	double took = time_all(count, [&, count, laps](int i) {
		channel &mine = *links[i], &next = *links[(i + 1) % count];
		for (long k = laps; k > 0; k--) {
			int token = 0;
			mine.pop(token);
			if (k > 1 || i < count - 1)
				next.push(token);
		}
	});
	starter.join();
	return took;
}

static double round_trips(long n)
{
	return pass_token(2, n);
}

static double hops(long n)
{
	return pass_token(crowd_size, n / crowd_size);
}

static void pingpong()
{
	bench_rate("pingpong", round_trips, 1000);
}

static void ring1000()
{
	bench_rate("ring1000", hops, crowd_size);
}

static double one_by_one(long n)
{
	double start = bench_now();
	for (long i = 0; i < n; i++)
		spawn([] {}).join();
	return bench_now() - start;
}

static void spawn_join()
{
	bench_rate("spawn_join", one_by_one, 1000);
}

static std::vector<fibers::fiber> crowd;

static double all_then_join(long n)
{
	crowd.reserve(n);
	double start = bench_now();
	for (long i = 0; i < n; i++)
		crowd.push_back(spawn([] {}));
	for (auto &f : crowd)
		f.join();
	double took = bench_now() - start;
	crowd.clear();
	return took;
}

static void spawn_1m()
{
	bench_fixed("spawn_1m", all_then_join, many, 1);
	bench_print("spawn_1m_peak", bench_peak());
}

static void grow(long number, long leaves, long *answer)
{
	if (leaves == 1) {
		*answer = number;
		return;
	}
	long answers[fanout], sum = 0, share = leaves / fanout;
	fibers::fiber growing[fanout];
	for (int i = 0; i < fanout; i++) {
		long *place = &answers[i];
		growing[i] = spawn([=] { grow(number + i * share, share, place); });
	}
	for (auto &f : growing)
		f.join();
	for (long a : answers)
		sum += a;
	*answer = sum;
}

static double tree(long leaves)
{
	long sum = 0;
	double start = bench_now();
	spawn([&] { grow(0, leaves, &sum); }).join();
	if (sum != leaves * (leaves - 1) / 2)
		bench_die("skynet: wrong sum", EINVAL);
	return bench_now() - start;
}

static void skynet()
{
	bench_fixed("skynet", tree, many, many / 1e6);
}

static volatile uint64_t answers[crowd_size]; // or nothing would be computed, as nobody reads them

static double crunch_all(long)
{
	return time_all(crowd_size, [](int i) { answers[i] = bench_crunch(i); });
}

static void fanout_case()
{
	bench_fixed("fanout", crunch_all, crowd_size, crowd_size / 1e6);
}

static void mix(int number)
{
	std::vector<fibers::fiber> all;
	channel there, back;
	all.push_back(spawn([=] { answers[number] = bench_crunch(number); }));
	all.push_back(spawn([&] {
		int token = 0;
		for (int i = 0; i < BENCH_MIX_ROUND_TRIPS; i++) {
			there.push(token);
			back.pop(token);
		}
	}));
	all.push_back(spawn([&] {
		int token = 0;
		for (int i = 0; i < BENCH_MIX_ROUND_TRIPS; i++) {
			there.pop(token);
			back.push(token);
		}
	}));
	for (int i = 0; i < BENCH_MIX_BURST; i++)
		all.push_back(spawn([] {}));
	boost::this_fiber::sleep_for(std::chrono::microseconds(BENCH_MIX_SLEEP_US * number));
	for (auto &f : all)
		f.join();
}

static void mixed_load()
{
	double ends = bench_now() + BENCH_MIX_NS;
	time_all(BENCH_MIXERS, [=](int i) {
		while (bench_now() < ends)
			mix(i + 1);
	});
}

static void pingpong_mixed()
{
	bench_rate_after("pingpong_mixed", mixed_load, round_trips, 1000);
}

static void ring1000_mixed()
{
	bench_rate_after("ring1000_mixed", mixed_load, hops, crowd_size);
}

static double contend(int count, long n)
{
	fibers::mutex mutex;
	long counter = 0;
	double took = time_all(count, [&, count, n](int) {
		for (long i = n / count; i > 0; i--) {
			std::lock_guard<fibers::mutex> lock(mutex);
			counter++;
		}
	});
	bench_same("mutex: wrong count", counter, n);
	return took;
}

static double contend_2(long n)
{
	return contend(2, n);
}

static double contend_crowd(long n)
{
	return contend(crowd_size, n);
}

static void mutex2()
{
	bench_rate("mutex2", contend_2, 2000);
}

static void mutex2_barging()
{
	bench_rate("mutex2_barging", contend_2, 2000);
}

static void mutex1000()
{
	bench_rate("mutex1000", contend_crowd, crowd_size * 100);
}

static void mutex1000_barging()
{
	bench_rate("mutex1000_barging", contend_crowd, crowd_size * 100);
}

// Half of the fibers produce, half consume.
static double through_queue(int pairs, long n)
{
	fibers::buffered_channel<int64_t> items(BENCH_QUEUE_CAPACITY);
	std::atomic<int64_t> taken(0);
	long share = n / pairs;
	double took = time_all(2 * pairs, [&, share](int i) {
		int64_t sum = 0, item = 0;
		for (long k = share; k > 0; k--)
			if (i % 2 == 0) {
				items.push(k);
			} else {
				items.pop(item);
				sum += item;
			}
		taken += sum;
	});
	bench_same("queue: wrong sum", taken, pairs * bench_sum(share));
	return took;
}

static double through_queue_1x1(long n)
{
	return through_queue(1, n);
}

static double through_queue_4x4(long n)
{
	return through_queue(4, n);
}

static double through_queue_100x100(long n)
{
	return through_queue(100, n);
}

static void queue_1x1()
{
	bench_rate("queue_1x1", through_queue_1x1, 1000);
}

static void queue_4x4()
{
	bench_rate("queue_4x4", through_queue_4x4, 1000);
}

static void queue_100x100()
{
	bench_rate("queue_100x100", through_queue_100x100, 10000);
}

static double hand_offs(long n)
{
	fibers::mutex mutex;
	fibers::condition_variable changed;
	int turn = 0;
	return time_all(2, [&, n](int me) {
		for (long k = n / 2; k > 0; k--) {
			std::unique_lock<fibers::mutex> lock(mutex);
			while (turn != me)
				changed.wait(lock);
			turn = 1 - me;
			changed.notify_one();
		}
	});
}

static void condition()
{
	bench_rate("condition", hand_offs, 1000);
}

static double promises(long n)
{
	int64_t sum = 0;
	double start = bench_now();
	for (long k = n; k > 0; k--)
		sum += fibers::async(fibers::launch::post, std::allocator_arg, stacks(), [k] { return k; }).get();
	double took = bench_now() - start;
	bench_same("promise: wrong sum", sum, bench_sum(n));
	return took;
}

static void promise()
{
	bench_rate("promise", promises, 1000);
}

static void select8()
{
	bench_skip("Boost.Fiber has no choice among several channels");
}

static void blocked_1m()
{
	fibers::mutex mutex;
	fibers::condition_variable gate;
	long arrived = 0;
	double before = bench_resident();

	for (long i = 0; i < many; i++)
		spawn([&] {
			std::unique_lock<fibers::mutex> lock(mutex);
			arrived++;
			gate.wait(lock);
		}).detach();
	while (arrived < many)
		boost::this_fiber::yield();
	bench_print("blocked_1m", (bench_resident() - before) / many);
	fflush(stdout);
	_exit(0); // the waiting fibers would be complained about
}

static std::pair<double, double> sleep_all()
{
	uint64_t seed = 1;
	double wall_start = bench_now(), cpu_start = bench_cpu();

	crowd.reserve(many);
	for (long i = 0; i < many; i++) {
		int ms = bench_next_sleep_ms(&seed);
		crowd.push_back(spawn([ms] { boost::this_fiber::sleep_for(std::chrono::milliseconds(ms)); }));
	}
	for (auto &f : crowd)
		f.join();
	crowd.clear();
	return { (bench_now() - wall_start) / 1e6, (bench_cpu() - cpu_start) / 1e6 };
}

static void sleepers_1m()
{
	sleep_all();
	std::pair<double, double> second = sleep_all();
	bench_print("sleepers_1m_wall", second.first);
	bench_print("sleepers_1m_cpu", second.second);
}

static const struct bench_case cases[] = {
	{ "yield2", yield2 },
	{ "yield1000", yield1000 },
	{ "spawn_join", spawn_join },
	{ "spawn_1m", spawn_1m },
	{ "pingpong", pingpong },
	{ "pingpong_mixed", pingpong_mixed },
	{ "ring1000", ring1000 },
	{ "ring1000_mixed", ring1000_mixed },
	{ "skynet", skynet },
	{ "fanout", fanout_case },
	{ "mutex2", mutex2 },
	{ "mutex2_barging", mutex2_barging },
	{ "mutex1000", mutex1000 },
	{ "mutex1000_barging", mutex1000_barging },
	{ "queue_1x1", queue_1x1 },
	{ "queue_4x4", queue_4x4 },
	{ "queue_100x100", queue_100x100 },
	{ "condition", condition },
	{ "promise", promise },
	{ "select8", select8 },
	{ "blocked_1m", blocked_1m },
	{ "sleepers_1m", sleepers_1m },
	{ nullptr, nullptr },
};

// Each lends itself to the fibers until everything is over. The main thread's fiber waits like any other.
struct other_threads {
	fibers::mutex mutex;
	fibers::condition_variable changed;
	bool over = false;
	std::vector<std::thread> threads;

	other_threads()
	{
		for (unsigned i = 1; i < workers; i++)
			threads.emplace_back([this] {
				fibers::use_scheduling_algorithm<fibers::algo::work_stealing>(workers);
				std::unique_lock<fibers::mutex> lock(mutex);
				changed.wait(lock, [this] { return over; });
			});
		if (workers > 1) // comes back when all of them have got here
			fibers::use_scheduling_algorithm<fibers::algo::work_stealing>(workers);
	}
	~other_threads()
	{
		{
			std::unique_lock<fibers::mutex> lock(mutex);
			over = true;
		}
		changed.notify_all();
		for (auto &t : threads)
			t.join();
	}
};

int main(int argc, char **argv)
{
	try {
		other_threads others;
		return bench_main(argc, argv, cases);
	} catch (const std::exception &e) {
		fprintf(stderr, "%s\n", e.what());
		return 1;
	}
}
