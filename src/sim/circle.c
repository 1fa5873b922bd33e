/* sim/circle.c - whether a run that does not end goes in a circle.
 *
 * Owns:       what is remembered of the processes' frames, and of one state in the past.
 * Invariant:  what is left out of a state cannot steer the program: heddle's own data, whose part that matters is put in by hand; and
 *             the frames of heddle's calls, down to the frame of the program that made the call. What is put in too much only hides a
 *             circle.
 * Callers:    the doors, on the one kernel thread there is. Nothing here calls malloc, which is the program's.
 *
 * Circles are found as Brent does: a state is remembered, and compared with those that follow; after 1, 2, 4, 8, ... steps a
 * new one is remembered, until one comes again. It must come once more after LONG. Memory is read only when all that is cheaper to
 * compare is the same. */
#define _GNU_SOURCE
#include "sim/circle.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

#include "port/port.h"
#include "sched/sched.h"
#include "sync/sync.h"

#define FRAMES_MAX 1024 /* processes whose frames are remembered; with more, no circle is found */
#define LONG 4000	/* steps for which a circle must have gone on: heddle's own patience is over then (sync/mutex.c) */
#define MEMORY_MAX ((size_t)64 << 20) /* of a state; of a program with more, none is made */
#define MAPS_MAX ((size_t)256 << 10)
#define STATES_MAX 256 /* that are made in a run: they take their time, and a program that counts differs each time */

struct range {
	uintptr_t from, to;
};

/* Where a process stands in the program's code. */
struct frame {
	hd_pid pid;
	uintptr_t sp;	    /* of the program's frame that called heddle */
	uint64_t registers; /* those that calls keep, and where it will go on */
};

static struct {
	uintptr_t main_frame;	 /* of the program's function that called hd_run; those above it are the program's too */
	struct range text, data; /* heddle's */
	struct frame frame[FRAMES_MAX];
	bool crowded;		  /* two processes wanted the same place above */
	uint32_t now, then, room; /* steps: of now; of the remembered state; until another one is remembered */
	uint64_t cheap, state;	  /* of the remembered one; 0: there is none */
	unsigned made;		  /* states */
	uint32_t length;	  /* of the circle; 0: the state has not come again */
} s;

static uint64_t mix(uint64_t hash, uint64_t what)
{
	hash = (hash ^ what) * UINT64_C(0xff51afd7ed558ccd);
	return hash ^ hash >> 29;
}

/* Reads what a sanitizer lets no program read: the space between variables too. A range begins at a word. */
__attribute__((no_sanitize_address)) static uint64_t mix_memory(uint64_t hash, struct range r)
{
	typedef uint64_t word __attribute__((may_alias));

	for (; r.from + sizeof(word) <= r.to; r.from += sizeof(word))
		hash = mix(hash, *(const word *)r.from);
	return hash;
}

/* ---- where a process stands ---- */

struct walk {
	struct frame *frame;
	uintptr_t call; /* the function of heddle that the program called */
	bool found;
};

static _Unwind_Reason_Code look_at_frame(struct _Unwind_Context *context, void *arg)
{
	static const int kept[] = HD__KEPT_REGISTERS;
	struct walk *walk = arg;
	uintptr_t ip = _Unwind_GetIP(context);

	if (ip >= s.text.from && ip < s.text.to) {
		walk->call = _Unwind_GetRegionStart(context);
		return _URC_NO_REASON;
	}
	walk->found = true;
	walk->frame->sp = _Unwind_GetCFA(context);
	walk->frame->registers = ip;
	for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
		walk->frame->registers = mix(walk->frame->registers, _Unwind_GetGR(context, kept[i]));
	return _URC_END_OF_STACK;
}

/* Whether the program asks for the time there. */
static bool asks_for_time(uintptr_t call)
{
	Dl_info info;

	return dladdr((void *)call, &info) != 0 && info.dli_sname != NULL && (uintptr_t)info.dli_saddr == call &&
	       strcmp(info.dli_sname, "hd_now") == 0;
}

/* The caller is on the stack of process `pid`. Returns false when nothing can be said of the run. */
static bool look_at_runner(hd_pid pid)
{
	struct frame *f = &s.frame[(uint64_t)pid % FRAMES_MAX];
	struct walk walk = { .frame = f };

	if (f->pid != 0 && ((f->pid ^ pid) & (HD__SLOTS - 1)) != 0)
		s.crowded = true;
	f->pid = pid;
	_Unwind_Backtrace(look_at_frame, &walk);
	return walk.found && !asks_for_time(walk.call);
}

/* ---- memory ---- */

/* What of `r` is not in one of the n ranges, from the lowest on. */
static uint64_t mix_rest(uint64_t hash, struct range r, const struct range *out, unsigned n, size_t *left)
{
	while (r.from < r.to) {
		struct range part = r;
		uintptr_t behind = r.to;
		for (unsigned i = 0; i < n; i++) {
			if (out[i].from <= part.from && out[i].to > part.from) { /* it begins in one that is left out */
				part.to = part.from;
				behind = out[i].to < r.to ? out[i].to : r.to;
				break;
			}
			if (out[i].from > part.from && out[i].from < part.to)
				behind = part.to = out[i].from;
		}
		if (part.to - part.from > *left) {
			*left = 0;
			return hash;
		}
		*left -= part.to - part.from;
		hash = mix_memory(hash, part);
		r.from = behind;
	}
	return hash;
}

static struct range range(const void *from, size_t size)
{
	return (struct range){ (uintptr_t)from, (uintptr_t)from + size };
}

/* What heddle keeps for itself. */
static unsigned list_own(const struct hd_worker *w, struct range *out)
{
	const struct hd__sched *sched = w->sched;
	unsigned n = 0;

	out[n++] = s.data;
	out[n++] = range(sched, sizeof *sched + sched->nworkers * sizeof *w);
	out[n++] = range(sched->table.blocks, sched->table.capacity * sizeof *sched->table.blocks);
	out[n++] = range(w->timers.heap - 2, (w->timers.capacity + 4) * sizeof *w->timers.heap);
	size_t size;
	const void *loans = hd__loans_memory(sched, &size);
	out[n++] = range(loans, size);
	const void *afters = hd__afters_memory(sched, &size);
	if (afters != NULL)
		out[n++] = range(afters, size);
	for (unsigned i = HD__STACK_MIN_CLASS; i <= HD__STACK_MAX_CLASS; i++)
		if (sched->stacks[i].base != NULL) {
			out[n++] = range(sched->stacks[i].base, sched->stacks[i].reserved);
			out[n++] = range(sched->stacks[i].free, sched->stacks[i].capacity * sizeof *sched->stacks[i].free);
		}
	return n;
}

/* Reads the kernel's list of the memory there is. */
static const char *read_maps(void)
{
	static char text[MAPS_MAX];
	size_t size = 0;
	ssize_t n = 0;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return NULL;
	while (size < sizeof text - 1 && (n = read(fd, text + size, sizeof text - 1 - size)) > 0)
		size += (size_t)n;
	close(fd);
	text[size] = 0;
	return n == 0 ? text : NULL; /* else it was too long */
}

static uintptr_t hexadecimal(const char **text)
{
	uintptr_t n = 0;

	for (;; ++*text) {
		char c = **text;
		if (c >= '0' && c <= '9')
			n = n << 4 | (uintptr_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			n = n << 4 | (uintptr_t)(c - 'a' + 10);
		else
			return n;
	}
}

/* All memory that the program can write and no other OS process shares, but for heddle's and for stacks. *left: how much there may be;
 * 0 when there was more. */
static uint64_t mix_program(uint64_t hash, const struct hd_worker *w, size_t *left)
{
	struct range own[8 + 2 * (HD__STACK_MAX_CLASS + 1)];
	unsigned n = list_own(w, own);
	const char *line = read_maps(), *end;

	if (line == NULL) {
		*left = 0;
		return hash;
	}
	for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
		struct range r = { .from = hexadecimal(&line) };
		line++;
		r.to = hexadecimal(&line);
		if (line[2] != 'w' || line[4] != 'p')
			continue;
		if (r.from <= s.main_frame && s.main_frame < r.to)
			r.from = s.main_frame;
		hash = mix_rest(hash, r, own, n, left);
	}
	return hash;
}

/* ---- states ---- */

static uint64_t mix_process(uint64_t hash, const struct hd__sched *sched, const struct hd_process *p)
{
	hd_pid pid = hd__pid(&sched->table, p);
	const struct frame *f = &s.frame[(uint64_t)pid % FRAMES_MAX];

	hash = mix(hash, (uint64_t)pid);
	hash = mix(hash, p->control);
	hash = mix(hash, (uint64_t)p->state << 32 | (uint64_t)p->why << 16 | p->priority);
	if (p->stack == NULL)
		return hash;
	/* One that has not run lately stands where it stood: all of its stack is as it was. */
	uintptr_t sp = f->pid == pid ? f->sp : (uintptr_t)p->context.sp;
	if (f->pid == pid)
		hash = mix(hash, f->registers);
	return mix_memory(hash, (struct range){ sp, (uintptr_t)p->stack + hd__stack_size(p->stack_class) });
}

/* 0: it cannot be made. */
static uint64_t make_state(const struct hd_worker *w)
{
	const struct hd__sched *sched = w->sched;
	uint64_t hash = 1, deadlines = 0;
	size_t left = MEMORY_MAX;

	if (s.made++ >= STATES_MAX)
		return 0;
	for (uint32_t slot = 0; slot < sched->table.made; slot++)
		hash = mix_process(hash, sched, &sched->table.blocks[slot]);
	for (uint32_t i = 1; i <= w->timers.count; i++) /* in any order */
		deadlines += mix(HD__TIMER_WHOSE(w->timers.heap[i].order), (uint64_t)(w->timers.heap[i].when - sched->now));
	hash = mix_program(mix(hash, deadlines), w, &left);
	return left > 0 ? hash | 1 : 0;
}

uint32_t hd__sim_circle_step(struct hd_worker *w, const struct hd_process *me, hd_pid next, uint64_t order)
{
	hd_pid pid = me != NULL ? hd__pid(&w->sched->table, me) : 0;
	bool known = me == NULL || look_at_runner(pid);
	uint64_t cheap = mix(mix(order, (uint64_t)next), me != NULL ? s.frame[(uint64_t)pid % FRAMES_MAX].registers : 0);

	s.now++;
	if (!known || s.crowded) { /* what was remembered may differ in what is not known */
		s.state = 0;
		return 0;
	}
	if (s.state != 0 && cheap == s.cheap && (s.length == 0 || s.now - s.then >= LONG)) {
		bool again = make_state(w) == s.state;
		if (again && s.length != 0)
			return s.length;
		s.length = again ? s.now - s.then : 0;
	}
	if (s.state == 0 || (s.length == 0 && s.now - s.then >= s.room)) {
		s.room = s.state != 0 ? 2 * s.room : 1;
		s.state = make_state(w);
		s.cheap = cheap;
		s.then = s.now;
		s.length = 0;
	}
	return 0;
}

/* ---- begin ---- */

/* Finds the module that this code is in, if it is not the program itself. */
static int look_at_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	uintptr_t here = (uintptr_t)look_at_module;
	struct range text = { 0, 0 }, data = { 0, 0 };

	(void)size, (void)arg;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		struct range r = { info->dlpi_addr + h->p_vaddr, info->dlpi_addr + h->p_vaddr + h->p_memsz };
		if (h->p_type != PT_LOAD)
			continue;
		if (h->p_flags & PF_X && here >= r.from && here < r.to)
			text = r;
		if (h->p_flags & PF_W)
			data = r;
	}
	if (text.to == 0 || info->dlpi_name[0] == 0)
		return 0;
	s.text = text;
	s.data = data;
	return 1;
}

void hd__sim_circle_begin(void)
{
	struct frame program = { .pid = 0 };

	dl_iterate_phdr(look_at_module, NULL);
	_Unwind_Backtrace(look_at_frame, &(struct walk){ .frame = &program });
	s.main_frame = program.sp;
}
