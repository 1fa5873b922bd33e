/* live.c - the memory of a program that runs, read by process_vm_readv(2): it is not stopped, and does not notice.
 *
 * The kernel allows this to the program's own user, if that user could attach a debugger. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "memory.h"

#define BATCH 512 /* pieces in a system call: at most IOV_MAX */

static void live_read(struct memory *m, struct piece *pieces, size_t n)
{
	struct iovec here[BATCH], there[BATCH];

	for (size_t first = 0; first < n;) {
		size_t count = n - first < BATCH ? n - first : BATCH, i = 0;
		for (i = 0; i < count; i++) {
			struct piece *piece = &pieces[first + i];
			here[i] = (struct iovec){ piece->to, piece->size };
			there[i] = (struct iovec){ (void *)(uintptr_t)piece->from, piece->size };
			piece->done = false;
		}
		ssize_t got = process_vm_readv(m->pid, here, count, there, count, 0);
		size_t left = got > 0 ? (size_t)got : 0;
		for (i = 0; i < count && left >= pieces[first + i].size; i++) {
			pieces[first + i].done = true;
			left -= pieces[first + i].size;
		}
		first += i < count ? i + 1 : i; /* the one that it stopped at is not there: on behind it */
	}
}

/* /proc/PID/pagemap has a word for each page: bit 63 says that it is in memory, bit 62 that it is swapped out. Stacks lie side by side, and are asked for in
 * that order: a window of the file has those of many processes. */
#define WINDOW 32768 /* pages */
struct pagemap {
	int file;	       /* -1: it cannot be opened */
	uint64_t page;	       /* bytes */
	uint64_t first, count; /* pages in the window */
	uint64_t words[WINDOW];
};

static bool move_window(struct pagemap *p, uint64_t first)
{
	ssize_t got = pread(p->file, p->words, sizeof p->words, (off_t)(first * sizeof p->words[0]));

	p->first = first;
	p->count = got > 0 ? (uint64_t)got / sizeof p->words[0] : 0;
	return p->count > 0;
}

static uint64_t live_lowest_used(struct memory *m, uint64_t base, uint64_t size)
{
	struct pagemap *p = m->own;
	uint64_t first = base / p->page, last = (base + size) / p->page;

	for (uint64_t i = first; p->file >= 0 && i < last; i++) {
		if (i - p->first >= p->count && !move_window(p, i))
			break;
		if (p->words[i - p->first] >> 62 != 0)
			return i * p->page;
	}
	return base + size;
}

static void live_thread(struct memory *m, int64_t tid, char *text, size_t size)
{
	char path[64], name[32] = "";

	text[0] = 0;
	snprintf(path, sizeof path, "/proc/%d/task/%" PRId64 "/comm", (int)m->pid, tid);
	FILE *f = fopen(path, "re");
	if (f == NULL) {
		snprintf(text, size, ", which has ended");
		return;
	}
	if (fgets(name, sizeof name, f) != NULL) {
		name[strcspn(name, "\n")] = 0;
		snprintf(text, size, " (%s)", name);
	}
	fclose(f);
}

static void live_close(struct memory *m)
{
	struct pagemap *p = m->own;

	if (p->file >= 0)
		close(p->file);
	free(p);
}

static const struct memory_ops live_ops = { live_read, live_lowest_used, live_thread, NULL, live_close };

static int read_scope(void)
{
	int scope = -1;
	FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");

	if (f != NULL) {
		if (fscanf(f, "%d", &scope) != 1)
			scope = -1;
		fclose(f);
	}
	return scope;
}

void live_explain(char *why, size_t why_size, const char *program, int scope, bool same_user)
{
	if (!same_user)
		snprintf(why, why_size, "%s runs for another user: only that user, or root, may look into it", program);
	else if (scope == 1)
		snprintf(why, why_size,
			 "the system does not let you read the memory of %s: kernel.yama.ptrace_scope is 1, which allows it to "
			 "parents and to root "
			 "only. Start that program with HEDDLE_INSPECT=1 in its environment, or look as root (sudo), or set "
			 "sysctl kernel.yama.ptrace_scope=0",
			 program);
	else if (scope == 2)
		snprintf(why, why_size,
			 "the system does not let you read the memory of %s: kernel.yama.ptrace_scope is 2, which allows it to "
			 "root only. Look as root "
			 "(sudo)",
			 program);
	else if (scope >= 3)
		snprintf(why, why_size,
			 "the system lets no program read the memory of %s: kernel.yama.ptrace_scope is %d until the next "
			 "boot. A core file "
			 "(kill -QUIT) still works",
			 program, scope);
	else
		snprintf(why, why_size,
			 "the system does not let you read the memory of %s: it has more rights than you, or a filter of "
			 "system calls forbids "
			 "process_vm_readv, as some containers have. Look as root (sudo), or from outside the container",
			 program);
}

static void explain(struct memory *m, const char *directory, char *why, size_t why_size)
{
	struct stat status;
	bool same_user = stat(directory, &status) != 0 || status.st_uid == geteuid() || geteuid() == 0;
	int scope = read_scope();

	live_explain(why, why_size, m->name, scope, same_user);
}

static void read_name(struct memory *m, const char *directory)
{
	char path[64], name[64] = "?";

	snprintf(path, sizeof path, "%s/comm", directory);
	FILE *f = fopen(path, "re");
	if (f != NULL) {
		if (fgets(name, sizeof name, f) != NULL)
			name[strcspn(name, "\n")] = 0;
		fclose(f);
	}
	snprintf(m->name, sizeof m->name, "process %d (%s)", (int)m->pid, name);
}

/* Every mapping of the beginning of a file, which may be a program or a library. */
static bool read_maps(struct memory *m, const char *directory, unsigned *lines)
{
	char path[64], *line = NULL;
	size_t room = 0;

	snprintf(path, sizeof path, "%s/maps", directory);
	FILE *f = fopen(path, "re");
	if (f == NULL)
		return false;
	for (*lines = 0; getline(&line, &room, f) > 0; (*lines)++) {
		uint64_t from, to, offset;
		char rights[8], file[256] = "";
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %255[^\n]", &from, &to, rights, &offset,
			   file) < 4)
			continue;
		if (offset == 0 && rights[0] == 'r' && (file[0] == '/' || strcmp(file, "[vdso]") == 0))
			memory_add_image(m, from, file);
	}
	free(line);
	fclose(f);
	return true;
}

bool live_open(struct memory *m, pid_t pid, char *why, size_t why_size)
{
	char directory[32], path[64];
	unsigned lines;

	*m = (struct memory){ .live = true, .pid = pid };
	snprintf(directory, sizeof directory, "/proc/%d", (int)pid);
	if (access(directory, F_OK) != 0) {
		snprintf(why, why_size, "there is no process %d", (int)pid);
		return false;
	}
	read_name(m, directory);
	if (!read_maps(m, directory, &lines)) {
		if (errno == ENOENT)
			snprintf(why, why_size, "there is no process %d any more", (int)pid);
		else
			explain(m, directory, why, why_size);
		return false;
	}
	uint64_t word;
	errno = 0;
	if (m->image_count == 0) {
		snprintf(why, why_size, "%s has no memory: it is a part of the kernel, or has ended", m->name);
		return false;
	}
	struct iovec here = { &word, 4 }, there = { (void *)(uintptr_t)m->images[0].at, 4 };
	if (process_vm_readv(pid, &here, 1, &there, 1, 0) != 4 && (errno == EPERM || errno == EACCES || errno == ENOSYS)) {
		explain(m, directory, why, why_size);
		free(m->images);
		return false;
	}
	snprintf(path, sizeof path, "%s/pagemap", directory);
	struct pagemap *p = m->own = need(calloc(1, sizeof *p));
	p->file = open(path, O_RDONLY | O_CLOEXEC);
	p->page = (uint64_t)sysconf(_SC_PAGESIZE);
	m->ops = &live_ops;
	return true;
}
