/* own_tls.cc - C++ in processes with thread-local storage of their own: thread_local objects, exceptions, modules that are loaded meanwhile.
 *
 *   own-tls MODULE        MODULE is own_tls_module.c, as a shared library */
#include <dlfcn.h>
#include <heddle.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#define CHECK(cond)                                                                                                            \
	do {                                                                                                                   \
		if (!(cond)) {                                                                                                 \
			std::fprintf(stderr, "%s:%d: CHECK(%s)\n", __FILE__, __LINE__, #cond);                                 \
			std::abort();                                                                                          \
		}                                                                                                              \
	} while (0)

namespace
{

const int PEOPLE = 20, TURNS = 20;
const char *module_name;
long made, destroyed;

struct Diary {
	std::string text;
	Diary() : text("a diary that is too long for a short string")
	{
		__atomic_add_fetch(&made, 1, __ATOMIC_SEQ_CST);
	}
	~Diary()
	{
		hd_yield(); /* may move; its storage comes along */
		CHECK(text.size() > 40);
		__atomic_add_fetch(&destroyed, 1, __ATOMIC_SEQ_CST);
	}
};

thread_local Diary diary;

/* Waits while it handles an exception, throws again, and waits in a destructor that runs because of it. */
struct Waits {
	~Waits()
	{
		hd_yield();
		CHECK(std::uncaught_exceptions() == 1);
	}
};

void throw_and_catch(long me, int depth)
{
	try {
		Waits waits;
		throw std::runtime_error(std::to_string(me));
	} catch (std::exception &e) {
		hd_yield();
		CHECK(std::string(e.what()) == std::to_string(me));
		if (depth > 0)
			throw_and_catch(me, depth - 1);
		try {
			hd_yield();
			throw;
		} catch (std::runtime_error &again) {
			CHECK(std::string(again.what()) == std::to_string(me));
		}
	}
}

typedef long *(*variable)();

void *live(void *arg)
{
	long me = reinterpret_cast<long>(arg);

	diary.text += std::to_string(me);
	hd_yield(); /* the first process loads the module meanwhile, or has */
	void *module = dlopen(module_name, RTLD_NOW);
	CHECK(module != nullptr);
	variable find = reinterpret_cast<variable>(dlsym(module, "module_variable"));
	CHECK(find != nullptr && *find() == 99);
	long *where = find();
	*where = me;
	for (int i = 0; i < TURNS; i++) {
		hd_yield();
		throw_and_catch(me, i % 3);
		CHECK(find() == where && *where == me);
		CHECK(diary.text == "a diary that is too long for a short string" + std::to_string(me));
	}
	CHECK(dlclose(module) == 0);
	return nullptr;
}

void *first(void *)
{
	hd_pid pids[PEOPLE];
	auto how = hd_spawn_how();

	how.own_tls = true;
	for (int round = 0; round < 3; round++) { /* from the second on, storages are used again */
		for (long i = 0; i < PEOPLE; i++) {
			pids[i] = hd_spawn_with(&how, live, reinterpret_cast<void *>(i));
			if (pids[i] == -ENOTSUP)
				hd_shutdown(77); /* under a sanitizer */
		}
		for (int i = 0; i < PEOPLE && pids[0] > 0; i++)
			CHECK(hd_join(pids[i], nullptr, HD_FOREVER) == 0);
	}
	return nullptr;
}

} // namespace

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	module_name = argv[1];
	for (unsigned workers = 1; workers <= 8; workers = workers == 1 ? 2 : workers + 6) {
		hd_config config = {};
		config.workers = workers;
		config.fixed = true;
		int code = hd_run(&config, first, nullptr);
		if (code != 0)
			return code;
		CHECK(made == 3 * PEOPLE && destroyed == made);
		made = destroyed = 0;
	}
	return 0;
}
