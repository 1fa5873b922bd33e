/* fuzz.c - what looks into programs, against memory and core files that are wrong: `fuzz [INPUTS [SEED]]`.
 *
 * First it runs processes of many kinds, and looks into itself while they wait, through a reader that keeps every page that was asked for. Then it changes some
 * bytes of these pages, or of a core file made of them, and looks again, as often as it is told. Nothing may crash, loop, or read without end: an input has
 * so many reads and no more. The seed of an input that fails is printed, and repeats it: `fuzz 1 SEED`. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <heddle.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <unistd.h>

#include "heddle/inspect.h"
#include "heddle/stacks.h"
#include "heddle/traces.h"

#define PAGE 4096
#define PAGES_MAX 4096
#define READS_MAX 100000      /* of an input */
#define BYTES_MAX (64u << 20) /* likewise, that were there */
#define CHANGES_MAX 8

static uint64_t state, seed;

static uint64_t draw(uint64_t below)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	uint64_t x = state ^ state >> 29;
	return (x * UINT64_C(0x9E3779B97F4A7C15) >> 16) % below;
}

static void fail(const char *what)
{
	fprintf(stderr, "fuzz: %s; the input is: fuzz 1 %" PRIu64 "\n", what, seed);
	abort();
}

static void on_signal(int signal)
{
	char text[96];
	int n = snprintf(text, sizeof text, "fuzz: signal %d; the input is: fuzz 1 %" PRIu64 "\n", signal, seed);

	if (write(STDERR_FILENO, text, (size_t)n) < 0)
		_exit(4);
	_exit(3);
}

/* ---- pages ---- */

static struct page {
	uint64_t at;
	unsigned char bytes[PAGE], right[PAGE];
} * pages;
static size_t page_count;
static bool keeps; /* pages that are missing are taken from this program */
static uint64_t reads, bytes;

static struct page *find_page(uint64_t at)
{
	size_t low = 0, high = page_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (pages[middle].at < at)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < page_count && pages[low].at == at)
		return &pages[low];
	if (!keeps || page_count == PAGES_MAX)
		return NULL;
	struct memory self;
	struct piece piece;
	static unsigned char text[PAGE];
	char why[256];
	if (!live_open(&self, getpid(), why, sizeof why))
		fail(why);
	piece = (struct piece){ at, text, PAGE, false };
	self.ops->read(&self, &piece, 1);
	memory_close(&self);
	if (!piece.done)
		return NULL;
	memmove(&pages[low + 1], &pages[low], (page_count++ - low) * sizeof *pages);
	pages[low].at = at;
	memcpy(pages[low].bytes, text, PAGE);
	memcpy(pages[low].right, text, PAGE);
	return &pages[low];
}

static void page_read(struct memory *m, struct piece *pieces, size_t n)
{
	(void)m;
	for (size_t i = 0; i < n; i++) {
		uint64_t from = pieces[i].from;
		size_t got = 0;
		if (++reads > READS_MAX)
			fail("too many reads");
		while (got < pieces[i].size) {
			struct page *page = find_page((from + got) / PAGE * PAGE);
			size_t offset = (size_t)((from + got) % PAGE), rest = PAGE - offset;
			if (page == NULL)
				break;
			if (rest > pieces[i].size - got)
				rest = pieces[i].size - got;
			memcpy((char *)pieces[i].to + got, page->bytes + offset, rest);
			got += rest;
		}
		pieces[i].done = got == pieces[i].size;
		bytes += got;
		if (bytes > BYTES_MAX)
			fail("too much was read");
	}
}

static uint64_t page_lowest_used(struct memory *m, uint64_t base, uint64_t size)
{
	(void)m;
	return base + size / 2;
}

static void page_thread(struct memory *m, int64_t tid, char *text, size_t size)
{
	(void)m;
	snprintf(text, size, " (thread %" PRId64 ")", tid);
}

static const struct memory_ops page_ops = { page_read, page_lowest_used, page_thread, NULL, NULL };

/* ---- looking ---- */

/* In place of libdw: goes from word to word, and takes what leads into code for callers. */
static void unwind_badly(void *none, const struct registers *r, struct window *w, struct frames *found)
{
	uint64_t at = r->sp, value;

	(void)none;
	for (int i = 0; i < 40 && window_read(w, at, &value); i++) {
		found->pc[found->count] = value;
		found->exact[found->count++] = value & 1;
		at += value % 64 == 0 ? value : 8;
	}
}

static void walk(struct memory *m, const struct census *c)
{
	struct modules modules;
	struct stacks stacks;
	struct window window = { 0 };
	char why[512];

	modules_find(&modules, m);
	for (size_t i = 0; i < modules.count; i++)
		if (modules.list[i].end <= modules.list[i].at || modules_at(&modules, modules.list[i].at) != &modules.list[i])
			fail("a module makes no sense");
	if (modules.count > 0 && draw(16) == 0) {
		int fd = module_open(&modules.list[0], m, NULL, why, sizeof why);
		if (fd >= 0)
			close(fd);
	}
	stacks_init(&stacks, &modules, unwind_badly, NULL);
	for (uint32_t i = 0; i < c->count; i++) {
		const struct row *r = &c->rows[i];
		struct registers registers = registers_of_context(r->sp, r->fp, r->pc);
		if (r->stack == 0 || r->sp < r->stack || r->sp >= r->stack + (UINT64_C(1) << r->stack_class))
			continue;
		window_set(&window, m, r->sp, r->stack + (UINT64_C(1) << r->stack_class), NULL, 0);
		uint32_t first = stacks_add(&stacks, &registers, &window, true);
		window_set(&window, m, r->sp, r->stack + (UINT64_C(1) << r->stack_class), NULL, 0);
		if (stacks_add(&stacks, &registers, &window, true) != first)
			fail("a stack differs from itself");
	}
	window_fini(&window);
	stacks_drop(&stacks);
	modules_drop(&modules);
}

/* All that the commands do with a program. Returns how many processes were found. */
static uint32_t look(struct memory *m)
{
	static struct copy copies[COPIES_MAX];
	size_t n = copies_find(m, copies, COPIES_MAX);
	uint32_t found = 0;

	for (size_t i = 0; i < n; i++) {
		struct census c;
		char why[256];
		if (!copy_runs(&copies[i]) || !census_take(&c, m, &copies[i], why, sizeof why))
			continue;
		census_measure_stacks(&c);
		for (uint32_t k = 0; k < c.count; k++)
			if (c.rows[k].worker < -1 || c.rows[k].worker >= (int32_t)c.nworkers || c.rows[k].slot >= c.made ||
			    census_find(&c, c.rows[k].pid) != &c.rows[k])
				fail("a row makes no sense");
		ps_print(&c, false);
		ps_print(&c, true);
		waits_print(&c, false);
		waits_print(&c, true);
		walk(m, &c);
		found += c.count;
		census_drop(&c);
	}
	return found;
}

static uint32_t look_at_pages(uint64_t image, bool live)
{
	struct memory m = { .ops = &page_ops, .live = live, .name = "pages" };

	reads = bytes = 0;
	memory_add_image(&m, image, "");
	uint32_t found = look(&m);
	free(m.images);
	return found;
}

/* ---- a core file of the pages ---- */

static int core;
static char core_path[64];
static uint64_t core_length;

static void put(const void *text, size_t size, uint64_t at)
{
	if (pwrite(core, text, size, (off_t)at) != (ssize_t)size)
		fail("pwrite");
}

static size_t put_note(unsigned char *to, uint32_t type, const void *text, uint32_t size)
{
	Elf64_Nhdr note = { 5, size, type };

	memcpy(to, &note, sizeof note);
	memcpy(to + sizeof note, "CORE\0\0\0", 8);
	memcpy(to + sizeof note + 8, text, size);
	return sizeof note + 8 + ((size + 3) & ~3u);
}

static void make_core(void)
{
	struct elf_prpsinfo info = { .pr_pid = 1, .pr_fname = "fuzz" };
	struct elf_prstatus status = { .pr_pid = 1 };
	static unsigned char notes[8192];
	Elf64_Phdr *headers = calloc(page_count + 1, sizeof *headers);
	uint64_t table[] = { 2, PAGE, 0x1000, 0x2000, 0, 0x3000, 0x4000, 1 };
	unsigned char files[sizeof table + 8];

	if (headers == NULL)
		fail("calloc");
	memcpy(files, table, sizeof table);
	memcpy(files + sizeof table, "/a\0/bcd", 8);
	size_t size = put_note(notes, NT_PRSTATUS, &status, sizeof status);
	size += put_note(notes + size, NT_PRPSINFO, &info, sizeof info);
	size += put_note(notes + size, NT_FILE, files, sizeof files);
	uint64_t at = sizeof(Elf64_Ehdr) + (page_count + 1) * sizeof *headers;
	headers[0] = (Elf64_Phdr){ .p_type = PT_NOTE, .p_offset = at, .p_filesz = size };
	put(notes, size, at);
	at += size;
	for (size_t i = 0; i < page_count; i++) {
		headers[i + 1] = (Elf64_Phdr){ .p_type = PT_LOAD,
					       .p_flags = PF_R | PF_W,
					       .p_vaddr = pages[i].at,
					       .p_offset = at,
					       .p_filesz = PAGE,
					       .p_memsz = PAGE };
		put(pages[i].right, PAGE, at);
		at += PAGE;
	}
	Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_CORE,
#if defined(__x86_64__)
		.e_machine = EM_X86_64,
#else
		.e_machine = EM_AARCH64,
#endif
		.e_phoff = sizeof header,
		.e_phentsize = sizeof *headers,
		.e_phnum = (Elf64_Half)(page_count + 1)
	};
	put(&header, sizeof header, 0);
	put(headers, (page_count + 1) * sizeof *headers, sizeof header);
	free(headers);
	core_length = at;
}

static uint32_t look_at_core(void)
{
	struct memory m;
	char why[512];

	if (!core_open(&m, core_path, why, sizeof why))
		return 0;
	uint32_t found = look(&m);
	memory_close(&m);
	return found;
}

/* ---- changes ---- */

/* A number that is likely to do harm. */
static uint64_t bad_number(void)
{
	static const uint64_t numbers[] = { 0,
					    1,
					    2,
					    7,
					    8,
					    0x7f,
					    0x80,
					    0xff,
					    0x100,
					    0x7fff,
					    0xffff,
					    0x10000,
					    0x7fffffff,
					    0x80000000,
					    0xffffffff,
					    0x100000000,
					    0x7fffffffffffffff,
					    0x8000000000000000,
					    0xffffffffffffffff,
					    0xfffffffffffff000,
					    1024,
					    1025,
					    1 << 24 };
	uint64_t n = numbers[draw(sizeof numbers / sizeof numbers[0])];

	return draw(4) == 0 ? n - draw(9) : draw(4) == 0 ? pages[draw(page_count)].at + draw(PAGE) : n;
}

/* Where: most of the memory is stack, which hardly matters; so half of the changes go where something stands. */
static size_t some_place(const unsigned char *text, size_t size)
{
	size_t at = draw(size);

	for (int i = 0; i < 64 && draw(8) != 0 && text[at] == 0; i++)
		at = draw(size);
	return at;
}

static size_t change(unsigned char *text, size_t size, size_t *length)
{
	size_t at = some_place(text, size);
	uint64_t number = bad_number();

	*length = (size_t)1 << draw(4);
	if (draw(3) != 0)
		at -= at % *length;
	if (*length > size - at)
		*length = size - at;
	if (draw(4) == 0)
		text[at] ^= (unsigned char)(1u << draw(8));
	else
		memcpy(text + at, &number, *length);
	return at;
}

static void try_pages(uint64_t image, bool *harmless)
{
	struct page *changed[CHANGES_MAX];
	unsigned n = 1 + (unsigned)draw(CHANGES_MAX);

	for (unsigned i = 0; i < n; i++) {
		size_t length;
		changed[i] = &pages[draw(page_count)];
		change(changed[i]->bytes, PAGE, &length);
	}
	*harmless = look_at_pages(image, draw(2)) > 0;
	for (unsigned i = 0; i < n; i++)
		memcpy(changed[i]->bytes, changed[i]->right, PAGE);
}

/* The headers and notes of the file are changed as often as all the rest of it. */
static void try_core(bool *harmless)
{
	unsigned char was[CHANGES_MAX][PAGE], now[PAGE];
	uint64_t at[CHANGES_MAX];
	unsigned n = 1 + (unsigned)draw(CHANGES_MAX);

	for (unsigned i = 0; i < n; i++) {
		size_t length;
		at[i] = draw(2) ? draw(core_length - PAGE) : draw(3) == 0 ? 0 : draw(core_length < 3 * PAGE ? 1 : 2 * PAGE);
		if (pread(core, was[i], PAGE, (off_t)at[i]) != PAGE)
			fail("pread");
		memcpy(now, was[i], PAGE);
		change(now, draw(2) ? 64 : PAGE, &length);
		put(now, PAGE, at[i]);
	}
	uint64_t cut = draw(8) == 0 ? draw(core_length) : core_length;
	if (cut < core_length && ftruncate(core, (off_t)cut) != 0)
		fail("ftruncate");
	*harmless = look_at_core() > 0;
	if (cut < core_length) {
		make_core();
		return;
	}
	for (unsigned i = n; i-- > 0;)
		put(was[i], PAGE, at[i]);
}

/* What the child that reads debug information could tell, if it were broken. */
static void try_records(void)
{
	static unsigned char record[512];
	struct traces t = { .of_count = 8, .of = calloc(8, sizeof *t.of) };
	uint32_t n;

	if (t.of == NULL)
		fail("calloc");
	for (int i = 0; i < 20; i++) {
		uint32_t count = (uint32_t)draw(8),
			 numbers[] = { count, (uint32_t)draw(9 - count), (uint32_t)draw(3), 0, 0, 0 };
		struct record_head head = { 1 + (uint32_t)draw(RECORD_DONE - 1), 0 };
		memset(record, 'a', sizeof record);
		memcpy(record, numbers, sizeof numbers);
		head.size = head.kind == RECORD_STACK  ? 8 + 8 * count
			    : head.kind == RECORD_ROWS ? 8 + 4 * numbers[1]
						       : 24 + 2 + (uint32_t)draw(40);
		if (head.kind == RECORD_PLACE)
			record[24 + draw(head.size - 25)] = record[head.size - 1] = 0;
		if (head.kind == RECORD_WARNING)
			continue;
		for (uint64_t changes = draw(3); changes > 0; changes--) {
			size_t length;
			change(record, head.size > 0 ? head.size : 1, &length);
		}
		if (draw(8) == 0)
			head.size = (uint32_t)draw(sizeof record);
		traces_take_record(&t, &head, record);
	}
	traces_sort(&t);
	for (uint32_t i = 0; i < t.of_count; i++)
		if (t.of[i] < t.count && t.list[t.of[i]].first + t.list[t.of[i]].count > t.address_count)
			fail("a trace makes no sense");
	for (uint32_t i = 0; i < t.place_count; i++)
		if (traces_places(&t, t.places[i].address, &n) == NULL ||
		    strlen(t.places[i].function) + strlen(t.places[i].file) > sizeof record)
			fail("a place makes no sense");
	traces_drop(&t);
}

/* ---- the program that is looked into ---- */

static struct hd_mutex left, right;
static struct hd_barrier both = HD_BARRIER(2);
static struct hd_semaphore hold;
static uint64_t image;

static void *take_both(void *arg)
{
	struct hd_mutex *one = arg, *other = one == &left ? &right : &left;

	if (hd_mutex_lock(one, HD_FOREVER) == 0 && hd_barrier_wait(&both, HD_FOREVER) >= 0 &&
	    hd_mutex_lock(other, HD_FOREVER) == 0)
		fail("no circle");
	return NULL;
}

static void *wait_for_hold(void *arg)
{
	return hd_semaphore_wait(&hold, hd_after(HD_SEC(1000))) == 0 ? arg : NULL;
}

static void behave(void *arg, void *const data[])
{
	(void)arg;
	(void)data;
	if (hd_semaphore_wait(&hold, HD_FOREVER) != 0)
		return;
}

static struct hd_interrupt interpret(void *self, uint64_t budget)
{
	(void)self;
	(void)budget;
	return hd_want_message(NULL, HD_FOREVER);
}

static void *first(void *arg)
{
	static const struct hd_machine_ops ops = { .interpret = interpret };
	hd_cown *cown = hd_cown_new(NULL, NULL);
	hd_pid pid = hd_spawn_with(&(struct hd_spawn){ .name = "ann", .priority = 30 }, take_both, &left);

	if (pid > 0)
		pid = hd_spawn_with(&(struct hd_spawn){ .name = "bob" }, take_both, &right);
	for (int i = 0; i < 12 && pid > 0; i++)
		pid = hd_spawn(wait_for_hold, NULL);
	if (pid > 0)
		pid = hd_spawn_with(&(struct hd_spawn){ .machine = &ops }, NULL, NULL);
	const struct hd_when when = { .fn = behave, .uses = &cown, .n = 1, .flags = HD_WHEN_MAY_BLOCK };
	for (int i = 0; i < 3 && pid > 0; i++)
		if (cown == NULL || hd_when_batch(&when, 1) != 0)
			pid = -1;
	if (pid <= 0 || hd_sleep(HD_MS(20)) != 0)
		fail("the processes cannot be made");
	keeps = true;
	if (look_at_pages(image, true) == 0)
		fail("nothing is found");
	keeps = false;
	hd_shutdown(0);
	return arg;
}

/* Where this program, which has heddle inside, is mapped. */
static uint64_t find_image(void)
{
	static struct copy copies[COPIES_MAX];
	struct memory self;
	char why[256];
	uint64_t at = 0;

	if (!live_open(&self, getpid(), why, sizeof why))
		fail(why);
	for (size_t i = 0; i < self.image_count && at == 0; i++) {
		struct memory one = self;
		one.images = &self.images[i];
		one.image_count = 1;
		if (copies_find(&one, copies, COPIES_MAX) > 0)
			at = self.images[i].at;
	}
	memory_close(&self);
	return at;
}

int main(int argc, char **argv)
{
	uint64_t inputs = argc > 1 ? strtoull(argv[1], NULL, 10) : 20000, begin = argc > 2 ? strtoull(argv[2], NULL, 10) : 1,
		 harmless = 0;
	const struct hd_config config = { .workers = 2, .fixed = true };

	pages = calloc(PAGES_MAX, sizeof *pages);
	core = memfd_create("core", MFD_CLOEXEC);
	if (pages == NULL || core < 0 || freopen("/dev/null", "w", stdout) == NULL)
		fail("memory");
	snprintf(core_path, sizeof core_path, "/proc/self/fd/%d", core);
	image = find_image();
	if (image == 0 || hd_run(&config, first, NULL) != 0)
		fail("heddle is not found");
	make_core();
	uint32_t in_pages = look_at_pages(image, false), in_core = look_at_core();
	if (in_pages < 15 || in_pages != in_core)
		fail("pages and core file differ");
	signal(SIGALRM, on_signal);
#if !defined(__SANITIZE_ADDRESS__)
	signal(SIGSEGV, on_signal);
	signal(SIGBUS, on_signal);
	signal(SIGFPE, on_signal);
#endif
	for (seed = begin; seed < begin + inputs; seed++) {
		bool fine = false;
		state = seed * UINT64_C(0x9E3779B97F4A7C15);
		if (seed % 1024 == 0 || seed == begin)
			alarm(60);
		try_records();
		if (draw(4) != 0)
			try_pages(image, &fine);
		else
			try_core(&fine);
		harmless += fine;
	}
	fprintf(stderr,
		"fuzz: %" PRIu64 " inputs of %zu pages, from seed %" PRIu64 ": %" PRIu64 " still had processes in them\n",
		inputs, page_count, begin, harmless);
	return 0;
}
