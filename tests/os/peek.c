/* os/peek.c - memory that may be gone is read by one system call, or, where a filter forbids that one, by others. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness/harness.h"
#include "os/memory.h"

/* Two pages, of which the second is gone. */
static char *page_before_a_gap(void)
{
	size_t page = hd__page_size;
	char *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(two != MAP_FAILED);
	memset(two, 7, page);
	CHECK_EQ(munmap(two + page, page), 0);
	return two;
}

static void peek_around_a_gap(void)
{
	size_t page = hd__page_size;
	char *there = page_before_a_gap(), copy[16], *many;

	errno = 5;
	CHECK(hd__os_peek(copy, there, sizeof copy));
	CHECK_EQ(copy[0] + copy[15], 14);
	CHECK(hd__os_peek(copy, there + page - sizeof copy, sizeof copy));
	CHECK(!hd__os_peek(copy, there + page - 8, sizeof copy));
	CHECK(!hd__os_peek(copy, there + page, sizeof copy));
	many = mmap(NULL, 20 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(many != MAP_FAILED);
	memset(many, 3, 10 * page);
	CHECK(hd__os_peek(many + 10 * page, many, 10 * page - 1)); /* more than a pipe takes at once */
	CHECK_EQ(memcmp(many, many + 10 * page, 10 * page - 1), 0);
	CHECK_EQ(errno, 5);
}

HD_TEST(peek_reads_what_is_there_and_nothing_else)
{
	peek_around_a_gap();
}

HD_TEST(peek_works_where_a_filter_forbids_its_system_call)
{
	struct sock_filter lines[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof lines / sizeof lines[0], lines };

	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) != 0)
		SKIP("no filters of system calls here");
	peek_around_a_gap();
}
