// words.cc - heddle from C++: processes run lambdas, a guard unlocks a mutex, and an exception stays inside its process.
//
// An exception must not leave the entry of a process, which C code calls: run_task catches it and hands it to the process that
// joins. hd_exit, hd_fail and a termination run no destructors: a C++ process ends by returning.
#include "../check.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <heddle.h>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

// Locks a mutex, and unlocks it at the end of the block, also when an exception leaves it.
class guard
{
      public:
	explicit guard(hd_mutex &m) : mutex(m)
	{
		CHECK(hd_mutex_lock(&mutex, HD_FOREVER) == 0);
	}
	~guard()
	{
		hd_mutex_unlock(&mutex);
	}
	guard(const guard &) = delete;
	guard &operator=(const guard &) = delete;

      private:
	hd_mutex &mutex;
};

// A process that runs a function. join waits for its end, and throws what the function threw.
class task
{
      public:
	explicit task(std::function<void()> f) : function(std::move(f)), pid(hd_spawn(run_task, this))
	{
		CHECK(pid > 0);
	}
	~task()
	{
		if (pid > 0)
			CHECK(hd_join(pid, nullptr, HD_FOREVER) == 0);
	}
	task(const task &) = delete;
	task &operator=(const task &) = delete;

	void join()
	{
		CHECK(hd_join(pid, nullptr, HD_FOREVER) == 0);
		pid = 0;
		if (thrown)
			std::rethrow_exception(thrown);
	}

      private:
	static void *run_task(void *arg)
	{
		task *self = static_cast<task *>(arg);
		try {
			self->function();
		} catch (...) {
			self->thrown = std::current_exception();
		}
		return nullptr;
	}

	std::function<void()> function;
	std::exception_ptr thrown;
	hd_pid pid;
};

static void *first(void *arg)
{
	const std::vector<std::string> lines = { "one two two", "two three", "three three one" };
	std::map<std::string, int> counts;
	hd_mutex lock = HD_MUTEX(0); // guards counts

	auto count_words = [&](const std::string &line) {
		for (std::size_t begin = 0, end; begin < line.size(); begin = end + 1) {
			end = std::min(line.find(' ', begin), line.size());
			guard inside(lock);
			counts[line.substr(begin, end - begin)]++;
		}
	};
	{
		std::vector<std::unique_ptr<task>> tasks;
		for (const std::string &line : lines)
			tasks.push_back(std::make_unique<task>([&] { count_words(line); }));
		for (auto &t : tasks)
			t->join();
	}
	for (const auto &word : counts)
		std::printf("%s: %d\n", word.first.c_str(), word.second);

	task failing([] { throw std::runtime_error("no such file"); });
	std::string what;
	try {
		failing.join();
	} catch (const std::exception &e) {
		what = e.what();
	}
	std::printf("a task has failed: %s\n", what.c_str());
	return arg;
}

int main()
{
	return hd_run(nullptr, first, nullptr) != 0;
}
