/* os/preempt.c - the signal that stops the program's code, its handler, and which code is the program's.
 *
 * Owns:       the action of one signal, from hd__os_preempt_begin to hd__os_preempt_end, and the list of texts. Both change only while no
 *             signal of heddle's own is on its way: before the first, and when the workers have ended.
 * Flags:      SA_ONSTACK, because the interrupted stack may be nearly full: whether there is room is looked at first. SA_RESTART, so that calls of the
 *             program that can be restarted are. Not SA_NODEFER: under load, signals may come faster than handlers end.
 *
 * A signal that heddle did not send goes to the action that was there before. */
#define _GNU_SOURCE
#include "os/preempt.h"

#include <dlfcn.h>
#include <errno.h>
#include <heddle/base.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "arch/valgrind.h"
#include "base/atomic.h"
#include "divert.h"
#include "os/signal.h"

#define TEXTS_MAX 64

static struct hd__preemption how;
static struct sigaction before; /* also after the end: the program may have kept on_preempt, and install it again */
static int taken;		/* the signal; 0: none. seq_cst, with `awaited` of os/signal.c: one of the two sees the other */
static struct {
	uintptr_t from, to;
} texts[TEXTS_MAX]; /* that may be stopped */
static unsigned ntexts;
static bool ready; /* all of these are as they will be */

/* heddle's own code, where it is linked into the program: the linker sets these if the library's text has a section of its own (src/meson.build). */
extern const char hd__text_begin[] __asm__("__start_hd_text") __attribute__((weak, visibility("hidden")));
extern const char hd__text_end[] __asm__("__stop_hd_text") __attribute__((weak, visibility("hidden")));

/* The action of a signal, past sanitizers: TSan would call the handler later than the signal comes, with a context that is not the interrupted one. */
int hd__plain_sigaction(int signal, const struct sigaction *action, struct sigaction *old) __asm__("__sigaction");

static bool is_heddles(uintptr_t pc)
{
	return pc >= (uintptr_t)hd__text_begin && pc < (uintptr_t)hd__text_end;
}

static bool is_preemptible(uintptr_t pc)
{
	if (is_heddles(pc))
		return false;
	for (unsigned i = 0; i < ntexts; i++)
		if (pc >= texts[i].from && pc < texts[i].to)
			return true;
	return false;
}

/* Whether the interrupted code is a handler of the program's, or anything else that has more signals blocked than its thread had at first: other processes
 * would run with these blocked. */
static bool is_masked(const sigset_t *mask)
{
	hd__signals now;

	memcpy(&now, mask, sizeof now);
	return now & ~(hd__os_of_thread()->usual | hd__os_signals_ours());
}

static void pass_on(int signal, siginfo_t *info, void *context)
{
	if (before.sa_flags & SA_SIGINFO)
		before.sa_sigaction(signal, info, context);
	else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
		before.sa_handler(signal);
}

/* The code that was stopped has called this. */
static void stopped(int signal, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)signal, (void)info;
	hd__arch_diverted(uc);
	how.call();
	/* The thread may have come to block more signals meanwhile, or to have another stack for them: the kernel would put the old ones back. */
	pthread_sigmask(SIG_SETMASK, NULL, &uc->uc_sigmask);
	sigaltstack(NULL, &uc->uc_stack);
}

static void on_preempt(int signal, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	struct hd__diversion d;

	if (ld_acq(&ready) == 0 || info->si_code != SI_QUEUE ||
	    info->si_value.sival_ptr != &how) { /* pairs with hd__os_preempt_begin */
		pass_on(signal, info, context);
		return;
	}
	if (is_preemptible(hd__arch_pc(uc)) && !is_masked(&uc->uc_sigmask) && hd__arch_divert_look(uc, &d) &&
	    how.may(hd__arch_sp(uc), hd__arch_sp(uc) - d.to))
		hd__arch_divert(uc, &d, stopped, signal, (uintptr_t)__builtin_return_address(0));
}

/* The runtimes of sanitizers; where ASan's is linked into the program, its code is not the program's. */
extern void hd__asan_init(void) __asm__("__asan_init") __attribute__((weak));
extern void hd__tsan_init(void) __asm__("__tsan_init") __attribute__((weak));

static bool has(const struct dl_phdr_info *object, uintptr_t address)
{
	for (unsigned i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &object->dlpi_phdr[i];
		if (h->p_type == PT_LOAD && address - (object->dlpi_addr + h->p_vaddr) < h->p_memsz)
			return true;
	}
	return false;
}

/* Where malloc is defined; 0: that cannot be told. Not its address alone: in a program that is loaded where it was linked, that may be a mere jump to it. */
static uintptr_t find_allocator(void)
{
	const ElfW(Sym) *symbol = NULL;
	Dl_info info;

	if (dladdr1((void *)(uintptr_t)malloc, &info, (void **)&symbol, RTLD_DL_SYMENT) == 0 || symbol == NULL ||
	    symbol->st_shndx == SHN_UNDEF)
		return 0;
	return (uintptr_t)malloc;
}

/* The C library is linked into it. */
static bool is_static(const struct dl_phdr_info *object)
{
	for (unsigned i = 0; i < object->dlpi_phnum; i++)
		if (object->dlpi_phdr[i].p_type == PT_INTERP)
			return false;
	return true;
}

static bool is_named(const char *path)
{
	const char *slash = strrchr(path, '/'), *file = slash != NULL ? slash + 1 : path, *list = how.objects;
	size_t length = strlen(file);

	while (list != NULL && length > 0) {
		if (strncmp(list, file, length) == 0 && (list[length] == ':' || list[length] == 0))
			return true;
		list = strchr(list, ':');
		if (list != NULL)
			list++;
	}
	return false;
}

struct collection {
	bool begun;
	uintptr_t allocator;
};

/* For each object of the program; the first is the program itself. One that has an allocator is left out: heddle allocates inside its lanes, and another
 * process of the thread could come into it half-way. */
static int collect(struct dl_phdr_info *object, size_t size, void *arg)
{
	struct collection *c = arg;
	bool is_program = !c->begun;

	(void)size;
	c->begun = true;
	if (is_program ? is_static(object) : !is_named(object->dlpi_name))
		return 0;
	if ((has(object, (uintptr_t)on_preempt) && !is_heddles((uintptr_t)on_preempt)) ||
	    has(object, (uintptr_t)hd__asan_init) || has(object, c->allocator))
		return 0;
	for (unsigned i = 0; i < object->dlpi_phnum && ntexts < TEXTS_MAX; i++) {
		const ElfW(Phdr) *h = &object->dlpi_phdr[i];
		if (h->p_type == PT_LOAD && h->p_flags & PF_X) {
			texts[ntexts].from = object->dlpi_addr + h->p_vaddr;
			texts[ntexts++].to = object->dlpi_addr + h->p_vaddr + h->p_memsz;
		}
	}
	return 0;
}

static bool is_ours(const struct sigaction *action)
{
	return action->sa_flags & SA_SIGINFO && action->sa_sigaction == on_preempt;
}

bool hd__os_is_preempt(int signal)
{
	return ld_seq(&taken) == signal;
}

bool hd__os_preempt_begin(const struct hd__preemption *wanted)
{
	struct sigaction action = { .sa_sigaction = on_preempt, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART };
	struct sigaction old;
	int saved = errno;

	/* Valgrind's frames are not the kernel's, and most of a program under TSan runs inside TSan. */
	if (hd__under_valgrind() || hd__tsan_init != NULL)
		return false;
	how = *wanted;
	st_seq(&taken, how.signal);
	ntexts = 0;
	dl_iterate_phdr(collect, &(struct collection){ .allocator = find_allocator() });
	sigemptyset(&action.sa_mask);
	bool works = ntexts > 0 && !hd__os_signal_is_awaited(how.signal) && hd__plain_sigaction(how.signal, NULL, &old) == 0;
	if (works && !is_ours(&old))
		before = old;
	works = works && hd__plain_sigaction(how.signal, &action, NULL) == 0;
	if (!works)
		st_seq(&taken, 0);
	st_rel(&ready, works); /* pairs with on_preempt */
	errno = saved;
	return works;
}

void hd__os_preempt_end(void)
{
	struct sigaction now;
	int saved = errno;

	if (ld_seq(&taken) == 0)
		return;
	st_seq(&taken, 0);
	if (hd__plain_sigaction(how.signal, NULL, &now) == 0 && is_ours(&now))
		hd__plain_sigaction(how.signal, &before, NULL); /* else the program has installed another one meanwhile */
	errno = saved;
}

void hd__os_preempt_hear(struct hd__thread *thread, int signal)
{
	sigset_t mask;
	int saved = errno;

	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	struct hd__of_thread *mine = hd__os_of_thread();
	memcpy(&mine->usual, &mask, sizeof mine->usual);
	/* The kernel's number, which hd__os_thread_id does not answer in a forked child. The watcher may look already. */
	int number = (int)syscall(SYS_gettid);
	st_rlx(&thread->number, number);
	st_rlx(&thread->id, signal > 0 && mine->usual & HD__SIGNAL_BIT(signal) ? 0 : number);
	errno = saved;
}

void hd__os_preempt(struct hd__thread *thread)
{
	siginfo_t info = { .si_code = SI_QUEUE };
	int saved = errno;

	info.si_pid = getpid();
	info.si_uid = getuid();
	info.si_value.sival_ptr = &how;
	syscall(SYS_rt_tgsigqueueinfo, info.si_pid, ld_rlx(&thread->id), how.signal,
		&info); /* by number: the thread may have ended */
	errno = saved;
}
