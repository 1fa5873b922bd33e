/* os/tls.c - thread-local storages of a process's own.
 *
 * The C library makes the storage itself (_dl_allocate_tls, which also serves its own threads): the variables of all modules, and the vector by which those
 * of modules that are loaded later are found. What it puts there for a thread besides, it has no function for, so that is done here:
 *
 *   the thread's number           mutexes and locks of streams name their owner by it: one that no kernel thread has
 *   the list of robust mutexes    empty; the kernel does not know it
 *   values of pthread keys        none
 *   restartable sequences         the kernel does not write here: the number of the CPU is asked for
 *   the resolver's state          of its own
 *   its links to other threads    to itself: the C library does not know it as a thread
 *
 * Where these are, the library says in tables that it has for debuggers; and each is looked at in the calling thread first. If one is missing or not as it
 * should be, no storage is ever made.
 *
 * Owns:      that knowledge, and storages that no process has. Those are used again, and never given back: what malloc keeps for a thread (some
 *            2 KiB, and memory that the process has freed) could not be freed with them.
 * Locking:   one lock, for both. The knowledge is constant once it is there.
 * Callers:   any thread. */
#define _GNU_SOURCE
#include "os/tls.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <locale.h>
#include <resolv.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/carry.h"
#include "arch/valgrind.h"
#include "base/atomic.h"
#include "os/fault.h"
#include "os/lock.h"
#include "os/memory.h"
#include "tp.h"

#undef p_type /* resolv.h has a function of this name, as a macro */

#define NUMBERS_FROM (1 << 22) /* no kernel thread has a higher number; and the futexes of the kernel have room for more */

struct storage {
	struct hd__tls tls; /* the first member */
	int number;
	bool bare; /* it has no vector: there was no memory for it when the storage was to be used again */
	struct __res_state resolver;
};

static unsigned char guard; /* the lock */
static struct hd__tls *unused;
static int numbers;	/* given so far */
static const char *why; /* there are no storages; NULL: not known yet, or there are */
static bool known;

/* The C library's, once `known`. Distances are from its description of a thread (`thread`) or from the thread pointer. */
static struct {
	void *(*allocate)(void *tp);		   /* _dl_allocate_tls: NULL makes one, else one is made as new */
	void (*deallocate)(void *tp, bool memory); /* _dl_deallocate_tls */
	void (*destroy)(void);			   /* __call_tls_dtors */
	size_t thread_size;
	size_t number, list, values, first_values, robust;
	ptrdiff_t resolver, error; /* from the thread pointer: __resp, errno */
	ptrdiff_t variables;	   /* and its own variables, */
	size_t variables_size;	   /* so many bytes */
	ptrdiff_t sequences;	   /* of restartable sequences */
	bool has_sequences;
} libc;

enum { VALUES_BLOCKS = 32, VALUES_IN_FIRST = 32, VARIABLES_MAX = 1024 };
struct value {
	uintptr_t of;
	void *value;
};
struct link {
	struct link *next, *before;
};
struct robust {
	void *first;
	long to_futex;
	void *pending;
};

/* ---- what the C library is like ---- */

/* One of its tables for debuggers: bits in an element, elements, distance. */
static bool find_field(const char *name, size_t *distance)
{
	const uint32_t *field = dlsym(RTLD_DEFAULT, name);

	if (field == NULL || field[2] >= libc.thread_size)
		return false;
	*distance = field[2];
	return true;
}

/* The module that has errno: its variables outlive the process. */
static int find_variables(struct dl_phdr_info *module, size_t size, void *arg)
{
	uintptr_t error = (uintptr_t)&errno, from = (uintptr_t)module->dlpi_tls_data;

	(void)size, (void)arg;
	for (unsigned i = 0; i < module->dlpi_phnum && from != 0; i++)
		if (module->dlpi_phdr[i].p_type == PT_TLS && error - from < module->dlpi_phdr[i].p_memsz) {
			libc.variables = (ptrdiff_t)(from - hd__arch_tp());
			libc.variables_size = module->dlpi_phdr[i].p_memsz;
			return 1;
		}
	return 0;
}

static bool find_functions(void)
{
	libc.allocate = (void *(*)(void *))(uintptr_t)dlsym(RTLD_DEFAULT, "_dl_allocate_tls");
	libc.deallocate = (void (*)(void *, bool))(uintptr_t)dlsym(RTLD_DEFAULT, "_dl_deallocate_tls");
	libc.destroy = (void (*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, "__call_tls_dtors");
	return libc.allocate != NULL && libc.deallocate != NULL && libc.destroy != NULL;
}

/* The calling thread is the C library's: whether all is there as it should be. */
static bool find_fields(void)
{
	const uint32_t *size = dlsym(RTLD_DEFAULT, "_thread_db_sizeof_pthread");
	const ptrdiff_t *sequences = dlsym(RTLD_DEFAULT, "__rseq_offset");
	uintptr_t tp = hd__arch_tp();
	void *resolver = dlsym(RTLD_DEFAULT, "__resp");
	struct robust *robust;
	size_t robust_size;

	if (size == NULL || *size < 512 || *size > 1 << 16 || resolver == NULL)
		return false;
	libc.thread_size = *size;
	if (!find_field("_thread_db_pthread_tid", &libc.number) || !find_field("_thread_db_pthread_list", &libc.list) ||
	    !find_field("_thread_db_pthread_specific", &libc.values) || dl_iterate_phdr(find_variables, NULL) == 0 ||
	    libc.variables_size > VARIABLES_MAX)
		return false;
	const char *thread = hd__arch_thread_of(tp, libc.thread_size);
	libc.resolver = (ptrdiff_t)((uintptr_t)resolver - tp);
	libc.error = (ptrdiff_t)((uintptr_t)&errno - tp);
	libc.has_sequences = sequences != NULL;
	libc.sequences = sequences != NULL ? *sequences : 0;
	if (!hd__arch_tp_is_known(tp) || *(const int *)(thread + libc.number) != (int)syscall(SYS_gettid))
		return false;
	const struct link *list = (const struct link *)(thread + libc.list);
	if (list->next == NULL || list->before == NULL || list->next->before != list || list->before->next != list)
		return false;
	const char *first_values = *(char *const *)(thread + libc.values);
	libc.first_values = (size_t)(first_values - thread);
	if (libc.first_values > libc.thread_size - VALUES_IN_FIRST * sizeof(struct value))
		return false;
	if (syscall(SYS_get_robust_list, 0, &robust, &robust_size) != 0 || robust_size != sizeof *robust)
		return false;
	libc.robust = (size_t)((char *)robust - thread);
	return libc.robust >= sizeof(void *) && libc.robust <= libc.thread_size - sizeof *robust &&
	       (robust->first != robust || ((void **)robust)[-1] == robust);
}

static const char *find_obstacle(void)
{
	if (hd__sanitized)
		return "ASan and TSan know one storage for each kernel thread";
	if (hd__under_valgrind())
		return "Valgrind knows one storage for each kernel thread";
	if (dlsym(RTLD_DEFAULT, "gnu_get_libc_version") == NULL)
		return "it needs the GNU C library, linked dynamically";
	return find_functions() && find_fields()
		       ? NULL
		       : "this version of the GNU C library is made in another way than those that heddle knows";
}

static bool learn_locked(void)
{
	if (known || why != NULL)
		return known;
	why = find_obstacle();
	known = why == NULL;
	if (!known)
		fprintf(stderr,
			"heddle: no process can have thread-local storage of its own (hd_spawn.own_tls) in this program: %s. "
			"Use hd_pin, or hd_local.\n",
			why);
	return known;
}

/* ---- one storage ---- */

static void init_thread(struct storage *s)
{
	uintptr_t tp = s->tls.tp, like = hd__arch_tp();
	char *thread = hd__arch_thread_of(tp, libc.thread_size);
	const char *like_thread = hd__arch_thread_of(like, libc.thread_size);
	struct robust *robust = (struct robust *)(thread + libc.robust);
	struct link *list = (struct link *)(thread + libc.list);

	hd__arch_tp_init(tp, like);
	*(int *)(thread + libc.number) = s->number;
	*list = (struct link){ list, list };
	*robust = (struct robust){ robust, ((const struct robust *)(like_thread + libc.robust))->to_futex, NULL };
	((void **)robust)[-1] = robust;
	*(void **)(thread + libc.values) = thread + libc.first_values;
}

/* A process before has used it: all variables of modules are made new, but for the C library's, which has memory in them. */
static bool renew(struct storage *s)
{
	char *thread = hd__arch_thread_of(s->tls.tp, libc.thread_size), *variables = (char *)s->tls.tp + libc.variables;
	char saved[VARIABLES_MAX];
	struct value **values = (struct value **)(thread + libc.values);

	memcpy(saved, variables, libc.variables_size);
	if (!s->bare)
		libc.deallocate((void *)s->tls.tp, false);
	s->bare = libc.allocate((void *)s->tls.tp) == NULL;
	memcpy(variables, saved, libc.variables_size);
	for (unsigned i = 0; i < VALUES_BLOCKS; i++)
		if (values[i] != NULL)
			memset(values[i], 0, VALUES_IN_FIRST * sizeof **values);
	return !s->bare;
}

/* What the library's own variables must have at the beginning of a thread. The locale is set by a call on that storage. */
static void init_variables(struct storage *s)
{
	struct hd__tls *before = NULL;
	struct hd__tls here = { .tp = hd__arch_tp() };

	if (libc.has_sequences)
		((int32_t *)(s->tls.tp + (uintptr_t)libc.sequences))[1] = -2; /* the CPU: not known */
	*(void **)(s->tls.tp + (uintptr_t)libc.resolver) = &s->resolver;
	*(int *)(s->tls.tp + (uintptr_t)libc.error) = 0;
	if (hd__tls_away != 0)
		before = &here;
	hd__tls_use(&s->tls);
	uselocale(LC_GLOBAL_LOCALE);
	hd__tls_use(before);
}

static struct storage *make(void)
{
	struct storage *s = hd__os_alloc(sizeof *s);
	void *tp = s != NULL && !hd__fault_strikes(HD__FAULT_ALLOC) ? libc.allocate(NULL) : NULL;

	if (tp == NULL) {
		hd__os_free(s);
		return NULL;
	}
	s->tls.tp = (uintptr_t)tp;
	s->number = NUMBERS_FROM + add_rlx(&numbers, 1);
	init_thread(s);
	return s;
}

int hd__os_tls_new(struct hd__tls **tls)
{
	int saved = errno;

	hd__lock(&guard);
	bool can = learn_locked();
	struct storage *s = (struct storage *)unused;
	if (can && s != NULL)
		unused = s->tls.next;
	hd__unlock(&guard);
	if (!can) {
		errno = saved;
		return -ENOTSUP;
	}
	if (s == NULL) {
		s = make();
	} else if (hd__fault_strikes(HD__FAULT_ALLOC) || !renew(s)) {
		hd__os_tls_drop(&s->tls);
		s = NULL;
	}
	if (s != NULL)
		init_variables(s);
	errno = saved;
	if (s == NULL)
		return -ENOMEM;
	*tls = &s->tls;
	return 0;
}

void hd__os_tls_destroy(struct hd__tls *tls)
{
	struct storage *s = (struct storage *)tls;

	libc.destroy();
	if (s->resolver.options & RES_INIT)
		res_nclose(&s->resolver);
	memset(&s->resolver, 0, sizeof s->resolver);
}

enum { HOME, LENT, ORPHAN };

void hd__os_tls_drop(struct hd__tls *tls)
{
	uint32_t lent = LENT;

	if (cas_acq_rel(&tls->lent, &lent, ORPHAN)) /* pairs with hd__os_tls_give_back */
		return;
	hd__lock(&guard);
	tls->next = unused;
	unused = tls;
	hd__unlock(&guard);
}

void hd__os_tls_forget(void)
{
	st_rlx(&guard, 0); /* of the parent's threads, none is here */
}

void hd__os_tls_borrow(struct hd__tls *tls)
{
	st_rlx(&tls->lent, LENT); /* its process waits: no other thread looks */
	hd__tls_use(tls);
}

void hd__os_tls_give_back(struct hd__tls *tls)
{
	hd__tls_use(NULL);
	if (xchg_acq_rel(&tls->lent, HOME) == ORPHAN) /* its process has been abandoned meanwhile */
		hd__os_tls_drop(tls);
}
