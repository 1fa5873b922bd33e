// asio.cc - the echo server on Boost.Asio, `asio callbacks` or `asio coroutines`. The protocol is that of echo.h.
//
// With one worker the io_context is told so (a concurrency hint of 1), which takes most of its locks away. With several, they share it.
#include <array>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio.hpp>

#include "echo.h"

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace
{

class connection : public std::enable_shared_from_this<connection>
{
      public:
	explicit connection(tcp::socket socket) : socket(std::move(socket))
	{
	}

	void read()
	{
		socket.async_read_some(asio::buffer(buffer), [self = shared_from_this()](error_code error, size_t n) {
			if (!error)
				self->write(n);
		});
	}

      private:
	void write(size_t n)
	{
		asio::async_write(socket, asio::buffer(buffer, n), [self = shared_from_this()](error_code error, size_t) {
			if (!error)
				self->read();
		});
	}

	tcp::socket socket;
	std::array<char, ECHO_BUFFER> buffer;
};

void accept_next(tcp::acceptor &acceptor)
{
	acceptor.async_accept([&acceptor](error_code error, tcp::socket socket) {
		if (error)
			bench_die("accept", error.value());
		std::make_shared<connection>(std::move(socket))->read();
		accept_next(acceptor);
	});
}

asio::awaitable<void> serve(tcp::socket socket)
{
	std::array<char, ECHO_BUFFER> buffer;

	try {
		for (;;) {
			size_t n = co_await socket.async_read_some(asio::buffer(buffer), asio::use_awaitable);
			co_await asio::async_write(socket, asio::buffer(buffer, n), asio::use_awaitable);
		}
	} catch (const boost::system::system_error &) {
		// The client has gone.
	}
}

asio::awaitable<void> accept_all(tcp::acceptor &acceptor)
{
	for (;;) {
		tcp::socket socket = co_await acceptor.async_accept(asio::use_awaitable);
		asio::co_spawn(acceptor.get_executor(), serve(std::move(socket)), asio::detached);
	}
}

} // namespace

int main(int argc, char **argv)
{
	bool coroutines = argc > 1 && strcmp(argv[1], "coroutines") == 0;
	unsigned workers = bench_workers();
	asio::io_context context(static_cast<int>(workers));
	tcp::acceptor acceptor(context, tcp::v4(), echo_listen());

	if (coroutines)
		asio::co_spawn(context, accept_all(acceptor), asio::detached);
	else
		accept_next(acceptor);
	std::vector<std::thread> threads;
	for (unsigned i = 1; i < workers; i++)
		threads.emplace_back([&context] { context.run(); });
	context.run();
}
