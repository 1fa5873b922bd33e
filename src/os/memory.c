/* os/memory.c - memory from malloc and from the kernel.
 *
 * Batches go through process_madvise, which takes many ranges in one call and, since Linux 6.13, any advice for oneself.
 * Measured on a 2-core virtual machine, per stack: guards of one page 620 ns in batches against 940 alone (of 17
 * pages 940 in batches), giving memory back 650
 * against 1,880. Where the kernel refuses, the same work is done piece by piece. */
#define _GNU_SOURCE
#include "os/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "arch/valgrind.h"
#include "os/fault.h"

#define GUARD_INSTALL 102 /* MADV_GUARD_INSTALL, newer than our oldest headers */
#define POPULATE_READ 22  /* MADV_POPULATE_READ, likewise */
#define SELF (-10000)	  /* PIDFD_SELF, likewise */
#define HUGE_PAGE (2u << 20)
#define BATCH 256
#define DUMP_FIRST ((size_t)1 << 20)
#define MAPS_USUAL 65530 /* mappings that a program may have */
#define MAPS_LEFT 2048	 /* of these, for the program itself */

size_t hd__page_size;

__attribute__((constructor)) static void read_page_size(void)
{
	hd__page_size = (size_t)sysconf(_SC_PAGESIZE);
}

void *hd__os_alloc(size_t size)
{
	int saved = errno;
	void *p = hd__fault_strikes(HD__FAULT_ALLOC) ? NULL : calloc(1, size);
	errno = saved;
	return p;
}

void *hd__os_realloc(void *p, size_t size)
{
	int saved = errno;
	void *q = hd__fault_strikes(HD__FAULT_ALLOC) ? NULL : realloc(p, size);
	errno = saved;
	return q;
}

void hd__os_free(void *p)
{
	int saved = errno;
	free(p);
	errno = saved;
}

size_t hd__os_address_space(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : SIZE_MAX;
}

void *hd__os_reserve(size_t size, int huge)
{
	int saved = errno;
	size_t slack = huge ? HUGE_PAGE : 0;
	char *base = MAP_FAILED;

	if (!hd__fault_strikes(HD__FAULT_MAP))
		base = mmap(NULL, size + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED) {
		errno = saved;
		return NULL;
	}
	if (huge) {
		char *aligned = (char *)(((uintptr_t)base + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
		if (aligned > base)
			munmap(base, (size_t)(aligned - base));
		if (aligned - base < (ptrdiff_t)slack)
			munmap(aligned + size, slack - (size_t)(aligned - base));
		base = aligned;
	}
	madvise(base, size, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE); /* a wish: without it, only slower */
	errno = saved;
	return base;
}

void hd__os_unreserve(void *base, size_t size)
{
	int saved = errno;
	if (base != NULL)
		munmap(base, size);
	errno = saved;
}

/* Wishes, both: without them a core file is longer, and has holes. */
void hd__os_dump_not(void *base, size_t size)
{
	int saved = errno;
	madvise(base, size, MADV_DONTDUMP);
	errno = saved;
}

void hd__os_dump(void *base, size_t size)
{
	int saved = errno;
	madvise(base, size, MADV_DODUMP);
	errno = saved;
}

void hd__os_dump_first(void *base, size_t size)
{
	if (size > DUMP_FIRST)
		hd__os_dump_not((char *)base + DUMP_FIRST, size - DUMP_FIRST);
}

/* Applies one advice to up to BATCH ranges. Returns 0 or -errno. */
static int advise(struct iovec *ranges, size_t n, int advice)
{
	size_t total = 0;
	for (size_t i = 0; i < n; i++)
		total += ranges[i].iov_len;
	if (!hd__under_valgrind() && syscall(SYS_process_madvise, SELF, ranges, n, advice, 0) == (long)total)
		return 0;
	for (size_t i = 0; i < n; i++)
		if (madvise(ranges[i].iov_base, ranges[i].iov_len, advice) != 0)
			return -errno;
	return 0;
}

static int install_guards(char *first, size_t size, size_t stride, size_t n)
{
	struct iovec ranges[BATCH];

	if (hd__fault_strikes(HD__FAULT_INSTALL))
		return -EINVAL;
	while (n > 0) {
		size_t k = n < BATCH ? n : BATCH;
		for (size_t i = 0; i < k; i++)
			ranges[i] = (struct iovec){ first + i * stride, size };
		int err = advise(ranges, k, GUARD_INSTALL);
		if (err != 0)
			return err;
		first += k * stride;
		n -= k;
	}
	return 0;
}

static int protect_guards(char *first, size_t size, size_t stride, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (mprotect(first + i * stride, size, PROT_NONE) != 0)
			return -errno;
	return 0;
}

uint32_t hd__os_protect_max(void)
{
	int saved = errno;
	char text[32] = "";
	int fd = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (read(fd, text, sizeof text - 1) < 0)
			text[0] = 0;
		close(fd);
	}
	errno = saved;
	long maps = text[0] != 0 ? strtol(text, NULL, 10) : MAPS_USUAL;
	return maps > 2 * MAPS_LEFT ? (uint32_t)(maps - MAPS_LEFT) / 2 : 0;
}

/* Tries a guard. An emulator may say yes to advice that it does not know, so the answer is not enough: the kernel must refuse
 * to populate a page that has one. */
static enum hd__guarding probe_guards(char *page)
{
	if (install_guards(page, HD__PAGE_SIZE, 0, 1) != 0)
		return HD__GUARD_PROTECT;
	return madvise(page, HD__PAGE_SIZE, POPULATE_READ) != 0 && errno == EFAULT ? HD__GUARD_INSTALL : HD__GUARD_PROTECT;
}

int hd__os_guard(char *first, size_t size, size_t stride, size_t n, enum hd__guarding *how)
{
	int saved = errno;
	int err = -ENOMEM;

	if (*how == HD__GUARD_UNKNOWN)
		*how = probe_guards(first);
	if (!hd__fault_strikes(HD__FAULT_GUARD))
		err = *how == HD__GUARD_INSTALL ? install_guards(first, size, stride, n)
						: protect_guards(first, size, stride, n);
	errno = saved;
	return err == 0 ? 0 : -ENOMEM;
}

void hd__os_discard(const struct hd__piece *pieces, size_t n)
{
	int saved = errno;
	struct iovec ranges[BATCH];

	while (n > 0) {
		size_t k = n < BATCH ? n : BATCH;
		for (size_t i = 0; i < k; i++)
			ranges[i] = (struct iovec){ pieces[i].base, pieces[i].size };
		advise(ranges, k, MADV_DONTNEED); /* what is not given back is merely kept */
		pieces += k;
		n -= k;
	}
	errno = saved;
}

/* Through a pipe, piece by piece: where there is no memory, the kernel writes less into it than was asked for. */
static long peek_by_pipe(char *to, const char *from, size_t n)
{
	size_t got = 0;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0)
		return -1;
	for (size_t piece; got < n; got += piece) {
		piece = n - got < PIPE_BUF ? n - got : PIPE_BUF;
		if (syscall(SYS_write, ends[1], from + got, piece) != (long)piece ||
		    syscall(SYS_read, ends[0], to + got, piece) != (long)piece)
			break;
	}
	close(ends[0]);
	close(ends[1]);
	return (long)got;
}

int hd__os_peek(void *to, const void *from, size_t n)
{
	int saved = errno;
	struct iovec into = { to, n }, what = { (void *)(uintptr_t)from, n };
	long got = syscall(SYS_process_vm_readv, (long)getpid(), &into, 1L, &what, 1L, 0L); /* the sanitizers do not mind it */

	if (got < 0 && (errno == ENOSYS || errno == EPERM)) /* qemu-user, filters of system calls */
		got = peek_by_pipe(to, from, n);
	errno = saved;
	return got == (long)n;
}

char *hd__os_lowest_resident(char *base, size_t size)
{
	int saved = errno;
	size_t page = HD__PAGE_SIZE;
	unsigned char resident[64];
	char *lowest = base + size;

	for (char *p = base; p < base + size && lowest == base + size; p += sizeof resident * page) {
		size_t rest = (size_t)(base + size - p), chunk = sizeof resident * page;
		if (mincore(p, rest < chunk ? rest : chunk, resident) != 0)
			break;
		for (size_t i = 0; i < sizeof resident && p + i * page < base + size; i++)
			if (resident[i] & 1) {
				lowest = p + i * page;
				break;
			}
	}
	errno = saved;
	return lowest;
}
