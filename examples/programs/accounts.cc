// accounts.cc - behaviours in C++: a lambda runs when the objects that it uses are its own.
//
// cown and when are all that it takes: some forty lines to copy. An exception must not leave the lambda, which C code calls.
#include "../check.h"

#include <cstdio>
#include <heddle.h>
#include <memory>
#include <string>
#include <utility>

// Owns a T, which only behaviours touch. Copies of a cown share the T; the last one that goes, or the last behaviour, deletes it.
template <typename T> class cown
{
      public:
	template <typename... Args> static cown make(Args &&...args)
	{
		hd_cown *c = hd_cown_new(new T{ std::forward<Args>(args)... }, [](void *t) { delete static_cast<T *>(t); });
		CHECK(c != nullptr);
		return cown(c);
	}
	cown(const cown &other) : c(hd_cown_retain(other.c))
	{
	}
	~cown()
	{
		hd_cown_release(c);
	}
	cown &operator=(const cown &) = delete;
	hd_cown *use() const
	{
		return c;
	}

      private:
	explicit cown(hd_cown *made) : c(made)
	{
	}
	hd_cown *c;
};

template <typename F, typename... T, std::size_t... I> void call(F &f, void *const data[], std::index_sequence<I...>)
{
	f(*static_cast<T *>(data[I])...);
}

// Has f(t, ...) run when the cowns are its own. What f has captured is deleted with it, before the cowns go to others.
template <typename F, typename... T> void when(F f, const cown<T> &...cowns)
{
	hd_cown *const uses[] = { cowns.use()... };
	struct hd_when how = {};

	how.fn = [](void *arg, void *const data[]) {
		call<F, T...>(*static_cast<F *>(arg), data, std::index_sequence_for<T...>());
	};
	how.arg = new F(std::move(f));
	how.drop = [](void *arg) { delete static_cast<F *>(arg); };
	how.uses = uses;
	how.n = sizeof...(T);
	CHECK(hd_when_batch(&how, 1) == 0);
}

struct account {
	std::string owner;
	long balance;
};

static void *bank(void *arg)
{
	auto ada = cown<account>::make("Ada", 100L), grace = cown<account>::make("Grace", 100L);
	auto reason = std::make_shared<std::string>("rent");

	for (long amount = 1; amount <= 10; amount++)
		when(
			[amount](account &from, account &to) {
				from.balance -= amount;
				to.balance += amount;
			},
			ada, grace);
	when(
		[reason](account &a) {
			std::printf("%s has %ld left after the %s\n", a.owner.c_str(), a.balance, reason->c_str());
		},
		ada);
	when([](account &a, account &b) { CHECK(a.balance + b.balance == 200); }, grace, ada);
	CHECK(hd_quiesce(HD_FOREVER) == 0);
	CHECK(reason.use_count() == 1);
	return arg;
}

int main()
{
	return hd_run(nullptr, bank, nullptr) != 0;
}
