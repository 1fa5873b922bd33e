/* uring.c - reads a file at random through io_uring, by liburing, on one kernel thread. */
#include <liburing.h>

#include "files.h"

struct reader {
	uint64_t seed, block;
	double start;
	void *buffer;
};

static struct files file;
static struct io_uring ring;

static void submit(struct reader *r, double now)
{
	struct io_uring_sqe *entry = io_uring_get_sqe(&ring); /* there is one: the ring holds one for each reader */

	r->block = files_next(&file, &r->seed);
	r->start = now;
	io_uring_prep_read(entry, file.fd, r->buffer, FILES_BLOCK, r->block * FILES_BLOCK);
	io_uring_sqe_set_data(entry, r);
}

int main(int argc, char **argv)
{
	static struct reader readers[FILES_READERS];
	int error = io_uring_queue_init(FILES_READERS, &ring, 0);

	if (error == -EPERM || error == -ENOSYS)
		bench_skip("io_uring is not allowed here");
	bench_ok(error, "io_uring_queue_init");
	file = files_open(argc, argv);
	for (int i = 0; i < FILES_READERS; i++) {
		readers[i] = (struct reader){ .seed = (uint64_t)i + 1, .buffer = files_buffer() };
		submit(&readers[i], file.start);
	}
	for (unsigned under_way = FILES_READERS; under_way > 0;) {
		struct io_uring_cqe *completion;
		unsigned head, seen = 0;

		error = io_uring_submit_and_wait(&ring, 1);
		if (error != -EINTR)
			bench_ok(error, "io_uring_submit_and_wait");
		io_uring_for_each_cqe(&ring, head, completion)
		{
			struct reader *r = io_uring_cqe_get_data(completion);
			double now = bench_now();

			files_check(completion->res, r->buffer, r->block);
			histogram_add(&file.times, (uint64_t)(now - r->start));
			seen++;
			if (now < file.end)
				submit(r, now);
			else
				under_way--;
		}
		io_uring_cq_advance(&ring, seen);
	}
	files_print(&file);
	return 0;
}
