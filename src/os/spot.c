/* os/spot.c - which file an address of the program lies in, and where the code was that a signal has interrupted; in signal handlers.
 *
 * Owns:       the action of SIGSEGV and SIGBUS while hd__os_walk_from walks: a fault of the walk itself ends it. What it had found until then is there, because
 *             backtrace(3) writes each address when it has found it.
 * Locking:    one walk at a time, by its caller. */
#define _GNU_SOURCE
#include "os/spot.h"

#include <elf.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "os/memory.h"

#define LINE_MAX 512

/* ---- files ---- */

/* A line of /proc/self/maps: "55d0-55d1 r-xp 00000000 08:01 123    /usr/bin/server". */
struct mapping {
	uintptr_t from, to, offset;
	const char *path;
};

static uintptr_t read_hex(const char **s)
{
	uintptr_t n = 0;

	for (;; ++*s) {
		if (**s >= '0' && **s <= '9')
			n = n << 4 | (uintptr_t)(**s - '0');
		else if (**s >= 'a' && **s <= 'f')
			n = n << 4 | (uintptr_t)(**s - 'a' + 10);
		else
			return n;
	}
}

static const char *behind_spaces(const char *s, int words)
{
	for (; words > 0; words--) {
		while (*s != 0 && *s != ' ')
			s++;
		while (*s == ' ')
			s++;
	}
	return s;
}

static struct mapping read_mapping(const char *line)
{
	struct mapping m;

	m.from = read_hex(&line);
	line += *line == '-';
	m.to = read_hex(&line);
	line = behind_spaces(line, 2);
	m.offset = read_hex(&line);
	m.path = behind_spaces(line, 3);
	return m;
}

/* What the addresses of a file that begins at `base` count from. */
static uintptr_t bias_of(uintptr_t base)
{
	ElfW(Ehdr) header;

	if (!hd__os_peek(&header, (const void *)base, sizeof header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
		return base;
	return header.e_type == ET_EXEC ? 0 : base;
}

static void match(const struct mapping *m, uintptr_t base, struct hd__spot *spots, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct hd__spot *p = &spots[i];
		if (p->address < m->from || p->address >= m->to || m->path[0] != '/')
			continue;
		size_t length = strnlen(m->path, sizeof p->path - 1);
		memcpy(p->path, m->path, length);
		p->path[length] = 0;
		p->offset = p->address - bias_of(base);
	}
}

void hd__os_find_spots(struct hd__spot *spots, unsigned n)
{
	int saved = errno, fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	char text[LINE_MAX], line[LINE_MAX];
	size_t length = 0;
	uintptr_t base = 0;

	for (unsigned i = 0; i < n; i++)
		spots[i] = (struct hd__spot){ .address = spots[i].address, .offset = spots[i].address };
	for (ssize_t got; fd >= 0 && ((got = read(fd, text, sizeof text)) > 0 || (got < 0 && errno == EINTR));)
		for (ssize_t i = 0; i < got; i++) {
			if (text[i] != '\n') {
				if (length < sizeof line - 1)
					line[length++] = text[i];
				continue;
			}
			line[length] = 0;
			length = 0;
			struct mapping m = read_mapping(line);
			if (m.offset == 0)
				base = m.from;
			match(&m, base, spots, n);
		}
	if (fd >= 0)
		close(fd);
	errno = saved;
}

/* ---- the walk ---- */

#define OWN_FRAMES 8 /* of the handler, at most */
#define WALK_MAX 128

static sigjmp_buf escape;
static pid_t walker;

static void on_fault(int signal)
{
	(void)signal;
	if ((pid_t)syscall(SYS_gettid) == ld_rlx(&walker))
		siglongjmp(escape, 1);
	for (;;) /* another thread has crashed, too: the program is about to die */
		pause();
}

unsigned hd__os_walk_from(uintptr_t pc, uintptr_t *spots, unsigned n)
{
	static void *found[WALK_MAX];
	static const int signals[] = { SIGSEGV, SIGBUS };
	struct sigaction action = { .sa_handler = on_fault, .sa_flags = SA_ONSTACK | SA_NODEFER }, before[2];
	unsigned first = 0, count = 0;
	sigset_t both, mask;

	memset(found, 0, sizeof found);
	sigemptyset(&action.sa_mask);
	sigemptyset(&both);
	st_rlx(&walker, (pid_t)syscall(SYS_gettid));
	for (int i = 0; i < 2; i++) {
		sigaddset(&both, signals[i]);
		sigaction(signals[i], &action, &before[i]);
	}
	pthread_sigmask(SIG_UNBLOCK, &both, &mask);
	if (sigsetjmp(escape, 0) == 0)
		backtrace(found, WALK_MAX);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	for (int i = 0; i < 2; i++)
		sigaction(signals[i], &before[i], NULL);
	while (first < OWN_FRAMES && (uintptr_t)found[first] != pc)
		first++;
	if (n > 0)
		spots[count++] = pc;
	for (unsigned i = first + 1; first < OWN_FRAMES && i < WALK_MAX && found[i] != NULL && count < n; i++)
		spots[count++] = (uintptr_t)found[i] - 1; /* the call */
	return count;
}
