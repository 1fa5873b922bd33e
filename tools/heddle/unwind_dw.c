/* unwind_dw.c - unwinds stacks and reads debug information, by libdw of elfutils.
 *
 * Runs in a child process (traces.c), which dies with it if a file is so corrupt that libdw does. Modules are reported by us, from memory.h's reader, so that it
 * is the same for programs that run and for core files, in containers, and for files that are gone. Registers and memory come from us, too. */
#define _GNU_SOURCE
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "process/process.h"
#include "stacks.h"
#include "traces.h"

#define BATCH 256
#define PEEK 1024 /* bytes of each stack that are read beforehand: most need no more */
#define TRIES 4
#define INLINED_MAX 32

const bool unwind_is_there = true;

static int find_no_elf(Dwfl_Module *mod, void **data, const char *name, Dwarf_Addr base, char **file, Elf **elf)
{
	(void)mod, (void)data, (void)name, (void)base, (void)file, (void)elf;
	return -1;
}

/* Debug information in files of their own, as packages have it. */
static const Dwfl_Callbacks callbacks = { .find_elf = find_no_elf,
					  .find_debuginfo = dwfl_standard_find_debuginfo,
					  .debuginfo_path = NULL };

struct unwinder {
	FILE *to;
	const struct wish_of_traces *wish;
	struct modules modules;
	struct stacks stacks;
	Dwfl *dwfl;
	struct window window;
	uint32_t told; /* stacks that the parent knows */
	/* of the stack that is being unwound */
	const struct registers *registers;
	struct frames *found;
};

/* ---- records ---- */

static void put(FILE *to, enum record kind, const void *head, size_t head_size, const void *rest, size_t rest_size)
{
	struct record_head record = { (uint32_t)kind, (uint32_t)(head_size + rest_size) };

	if (fwrite(&record, sizeof record, 1, to) != 1 || fwrite(head, 1, head_size, to) != head_size ||
	    (rest_size > 0 && fwrite(rest, 1, rest_size, to) != rest_size))
		_exit(1); /* the parent has gone */
}

/* Tells a place. `told` is what the parent knows it by. */
static void put_place(FILE *to, uint64_t address, uint32_t index, const char *function, const char *file, int line,
		      bool inlined)
{
	struct {
		uint64_t address;
		uint32_t index, line, inlined, zero;
	} head = { address, index, line > 0 ? (uint32_t)line : 0, inlined, 0 };
	char text[2048];
	int n = snprintf(text, sizeof text / 2, "%s", function != NULL ? function : "");

	n = (n < (int)sizeof text / 2 ? n : (int)sizeof text / 2 - 1) + 1;
	int m = snprintf(text + n, sizeof text / 2, "%s", file != NULL ? file : "");
	m = (m < (int)sizeof text / 2 ? m : (int)sizeof text / 2 - 1) + 1;
	put(to, RECORD_PLACE, &head, sizeof head, text, (size_t)(n + m));
}

/* ---- unwinding ---- */

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread)
{
	(void)dwfl;
	if (*thread != NULL)
		return 0;
	*thread = arg;
	return 1;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread)
{
	(void)dwfl, (void)tid;
	*thread = arg;
	return true;
}

static bool read_word(Dwfl *dwfl, Dwarf_Addr at, Dwarf_Word *value, void *arg)
{
	struct unwinder *u = arg;

	(void)dwfl;
	return window_read(&u->window, at, value);
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct registers *r = ((struct unwinder *)arg)->registers;

	for (int i = 0; i < REGISTERS_MAX; i++)
		if (r->known >> i & 1 && !dwfl_thread_state_registers(thread, i, 1, &r->value[i]))
			return false;
	dwfl_thread_state_register_pc(thread, r->pc);
	return true;
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread, .get_thread = get_thread, .memory_read = read_word, .set_initial_registers = set_registers
};

static int add_frame(Dwfl_Frame *frame, void *arg)
{
	struct unwinder *u = arg;
	struct frames *f = u->found;
	Dwarf_Addr pc;
	bool exact;

	if (!dwfl_frame_pc(frame, &pc, &exact) || pc == 0)
		return DWARF_CB_ABORT;
	if (f->count == FRAMES_MAX ||
	    (f->count > 0 && !modules_have_code(&u->modules, pc))) { /* too many; or a guess, where no file says how to go on */
		f->cut = true;
		return DWARF_CB_ABORT;
	}
	f->exact[f->count] = exact;
	f->pc[f->count++] = pc;
	return DWARF_CB_OK;
}

static void unwind(void *unwinder, const struct registers *r, struct window *w, struct frames *found)
{
	struct unwinder *u = unwinder;

	(void)w;
	u->registers = r;
	u->found = found;
	dwfl_getthread_frames(u->dwfl, 1, add_frame, u);
}

/* Where names are looked for: the call is before its return address. */
static uint64_t address_of(const struct stack *k, uint32_t i)
{
	return k->pc[i] - !k->exact[i];
}

/* Those that are new since it was last called. */
static void put_stacks(struct unwinder *u)
{
	for (; u->told < u->stacks.count; u->told++) {
		const struct stack *k = &u->stacks.list[u->told];
		struct {
			uint32_t count, cut;
			uint64_t address[FRAMES_MAX];
		} record = { .count = k->count, .cut = k->cut };
		for (uint32_t i = 0; i < k->count; i++)
			record.address[i] = address_of(k, i);
		put(u->to, RECORD_STACK, &record, 8 + k->count * sizeof record.address[0], NULL, 0);
	}
}

/* ---- processes ---- */

static uint64_t top_of(const struct row *r)
{
	return r->stack + (UINT64_C(1) << r->stack_class);
}

static bool is_off(const struct row *r)
{
	return r->stack != 0 && r->state != HD_RUNNING && r->state != HD_ENDED;
}

/* Whether it has a stack, and has left it. */
static bool is_parked(const struct row *r)
{
	return is_off(r) && r->sp >= r->stack && r->sp < top_of(r) && r->pc != 0;
}

/* Which of the rows are as they were. Those that are about to leave their stacks have time to. */
static void look_again(const struct census *c, struct row *const *rows, uint32_t n, bool *same)
{
	bool leaving = true;

	for (int try = 0; leaving && try < TRIES; try++) {
		if (try > 0)
			nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
		rows_look_again(c, rows, n, same);
		leaving = false;
		for (uint32_t i = 0; i < n; i++)
			leaving |= c->m->live && same[i] && is_off(rows[i]) && rows[i]->pc == 0;
	}
}

static void walk_batch(struct unwinder *u, uint32_t first, uint32_t n)
{
	static unsigned char bytes[BATCH][PEEK];
	const struct census *c = u->wish->census;
	struct piece pieces[BATCH];
	struct row *rows[BATCH];
	bool before[BATCH], after[BATCH];
	struct {
		uint32_t first, n, of[BATCH];
	} record = { first, n, { 0 } };

	for (uint32_t i = 0; i < n; i++)
		rows[i] = &c->rows[u->wish->rows[first + i]];
	look_again(c, rows, n, before);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t size = before[i] && is_parked(rows[i]) ? top_of(rows[i]) - rows[i]->sp : 0;
		pieces[i] = (struct piece){ rows[i]->sp, bytes[i], size < PEEK ? (size_t)size : PEEK, false };
	}
	c->m->ops->read(c->m, pieces, n);
	for (uint32_t i = 0; i < n; i++) {
		record.of[i] = before[i] ? NOT_FOUND : NOT_WALKED;
		if (pieces[i].size == 0)
			continue;
		struct registers r = registers_of_context(rows[i]->sp, rows[i]->fp, rows[i]->pc);
		window_set(&u->window, c->m, rows[i]->sp, top_of(rows[i]), bytes[i], pieces[i].done ? pieces[i].size : 0);
		uint32_t stack = stacks_add(&u->stacks, &r, &u->window, true);
		record.of[i] = stack != NO_STACK ? stack : NOT_FOUND;
	}
	rows_look_again(c, rows, n, after);
	for (uint32_t i = 0; i < n; i++)
		if (!after[i])
			record.of[i] = NOT_WALKED;
	put_stacks(u);
	put(u->to, RECORD_ROWS, &record, 2 * sizeof(uint32_t) + n * sizeof(uint32_t), NULL, 0);
}

/* Those that were stopped while they ran. */
static void walk_stopped(struct unwinder *u)
{
	for (uint32_t i = 0; i < u->wish->stopped_count; i++) {
		const struct stopped *s = &u->wish->stopped[i];
		uint32_t record[3] = { 0, 1, NOT_FOUND };
		while (record[0] < u->wish->count && u->wish->rows[record[0]] != s->row)
			record[0]++;
		if (record[0] == u->wish->count)
			continue;
		window_set(&u->window, u->wish->census->m, s->registers.sp, s->top, s->bytes, s->size);
		uint32_t stack = stacks_add(&u->stacks, &s->registers, &u->window, false);
		if (stack != NO_STACK)
			record[2] = stack;
		put_stacks(u);
		put(u->to, RECORD_ROWS, record, sizeof record, NULL, 0);
	}
}

/* ---- modules ---- */

static void warn(FILE *to, const char *text)
{
	if (text[0] != 0)
		put(to, RECORD_WARNING, text, strlen(text), NULL, 0);
}

static void report_modules(struct unwinder *u)
{
	char why[512];

	dwfl_report_begin(u->dwfl);
	for (size_t i = 0; i < u->modules.count; i++) {
		const struct module *module = &u->modules.list[i];
		int fd = module_open(module, u->wish->census->m, u->wish->root, why, sizeof why);
		warn(u->to, why);
		if (fd >= 0 && dwfl_report_elf(u->dwfl, module->path[0] != 0 ? module->path : "?", module->path, fd,
					       module->bias, true) == NULL)
			close(fd);
	}
	dwfl_report_end(u->dwfl, NULL, NULL);
}

/* ---- names ---- */

/* The unit that has an address; clang writes no table of them. */
static Dwarf_Die *find_unit(Dwfl_Module *mod, Dwarf_Addr address, Dwarf_Addr *bias)
{
	Dwarf_Die *unit = dwfl_module_addrdie(mod, address, bias);

	if (unit != NULL)
		return unit;
	while ((unit = dwfl_module_nextcu(mod, unit, bias)) != NULL)
		if (dwarf_haspc(unit, address - *bias) > 0)
			break;
	return unit;
}

static const char *name_of_function(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	const char *name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_name, &attribute));

	return name != NULL ? name : "";
}

/* A file as the compiler was told of it: without the directory that it ran in. */
static const char *short_file(const char *file, const char *directory)
{
	size_t n = directory != NULL ? strlen(directory) : 0;

	return file != NULL && n > 0 && strncmp(file, directory, n) == 0 && file[n] == '/' ? file + n + 1 : file;
}

/* Without what a compiler has added: ".constprop.0", "@@VERSION". */
static const char *symbol_name(const char *symbol, char text[256])
{
	if (symbol == NULL)
		return "";
	snprintf(text, 256, "%.*s", (int)strcspn(symbol, ".@"), symbol);
	return text[0] != 0 ? text : symbol;
}

/* All places of an address: the functions that were inlined there, then the one that has the code. */
static void tell_place(FILE *to, Dwfl *dwfl, uint64_t address, uint64_t told)
{
	Dwfl_Module *mod = dwfl_addrmodule(dwfl, address);
	Dwarf_Addr bias = 0;
	Dwarf_Die *scopes = NULL, *unit = mod != NULL ? find_unit(mod, address, &bias) : NULL;
	char text[256];
	const char *symbol = mod != NULL ? symbol_name(dwfl_module_addrname(mod, address), text) : "", *file = NULL,
		   *directory = NULL;
	uint32_t index = 0;
	int line = 0, n = unit != NULL ? dwarf_getscopes(unit, address - bias, &scopes) : 0;

	if (mod == NULL)
		return;
	if (unit != NULL) {
		Dwarf_Attribute attribute;
		Dwarf_Line *at = dwarf_getsrc_die(unit, address - bias);
		directory = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
		if (at != NULL) {
			file = short_file(dwarf_linesrc(at, NULL, NULL), directory);
			if (dwarf_lineno(at, &line) != 0)
				line = 0;
		}
	}
	for (int i = 0; i < n && index < INLINED_MAX; i++) {
		Dwarf_Attribute attribute;
		Dwarf_Files *files;
		Dwarf_Word number;
		int tag = dwarf_tag(&scopes[i]);
		if (tag == DW_TAG_subprogram) {
			put_place(to, told, index++, name_of_function(&scopes[i]), file, line, false);
			free(scopes);
			return;
		}
		if (tag != DW_TAG_inlined_subroutine)
			continue;
		put_place(to, told, index++, name_of_function(&scopes[i]), file, line, true);
		file = NULL;
		line = 0;
		if (dwarf_formudata(dwarf_attr(&scopes[i], DW_AT_call_file, &attribute), &number) == 0 &&
		    dwarf_getsrcfiles(unit, &files, NULL) == 0)
			file = short_file(dwarf_filesrc(files, number, NULL, NULL), directory);
		if (dwarf_formudata(dwarf_attr(&scopes[i], DW_AT_call_line, &attribute), &number) == 0 && number <= INT32_MAX)
			line = (int)number;
	}
	free(scopes);
	if (symbol[0] != 0 || file != NULL)
		put_place(to, told, index, symbol, file, line, false);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

/* Each address once. */
static void tell_places(struct unwinder *u)
{
	size_t n = 0, room = 0;
	uint64_t *all = NULL;

	for (uint32_t i = 0; i < u->stacks.count; i++)
		room += u->stacks.list[i].count;
	all = need(malloc((room + 1) * sizeof *all));
	for (uint32_t i = 0; i < u->stacks.count; i++)
		for (uint32_t k = 0; k < u->stacks.list[i].count; k++)
			all[n++] = address_of(&u->stacks.list[i], k);
	for (uint32_t i = 0; i < u->wish->count; i++) { /* and the functions of those that have no stack */
		const struct row *r = &u->wish->census->rows[u->wish->rows[i]];
		if (r->stack == 0 && r->function != 0) {
			if (n == room)
				all = need(realloc(all, ((room = 2 * room + 1024) + 1) * sizeof *all));
			if (n == 0 || all[n - 1] != r->function)
				all[n++] = r->function;
		}
	}
	qsort(all, n, sizeof *all, by_value);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || all[i] != all[i - 1])
			tell_place(u->to, u->dwfl, all[i], all[i]);
	free(all);
}

/* ---- what the parent asks for ---- */

void unwind_program(FILE *to, const struct wish_of_traces *wish)
{
	struct unwinder u = { .to = to, .wish = wish, .dwfl = dwfl_begin(&callbacks) };

	if (u.dwfl == NULL)
		_exit(1);
	modules_find(&u.modules, wish->census->m);
	report_modules(&u);
	if (!dwfl_attach_state(u.dwfl, NULL, 1, &thread_callbacks, &u))
		warn(to, "no file of the program can be read: there are no backtraces");
	stacks_init(&u.stacks, &u.modules, unwind, &u);
	for (uint32_t i = 0; i < wish->count; i += BATCH)
		walk_batch(&u, i, wish->count - i < BATCH ? wish->count - i : BATCH);
	walk_stopped(&u);
	fflush(to); /* what comes now may die of a corrupt file */
	tell_places(&u);
	put(to, RECORD_DONE, &u.stacks.unwound, sizeof u.stacks.unwound, NULL, 0);
}

void unwind_files(FILE *to, const struct in_file *wanted, uint32_t n, const char *root)
{
	uint64_t none = 0;
	Dwfl *dwfl = NULL;
	char path[1024], text[1200];

	for (uint32_t i = 0; i < n; i++) {
		if (i == 0 || strcmp(wanted[i].path, wanted[i - 1].path) != 0) {
			dwfl_end(dwfl);
			dwfl = dwfl_begin(&callbacks);
			if (dwfl == NULL)
				_exit(1);
			snprintf(path, sizeof path, "%s%s", root != NULL ? root : "", wanted[i].path);
			dwfl_report_begin(dwfl);
			if (dwfl_report_elf(dwfl, "?", path, -1, 0, true) == NULL) {
				snprintf(text, sizeof text, "%s: %s", path, dwfl_errmsg(-1));
				warn(to, text);
			}
			dwfl_report_end(dwfl, NULL, NULL);
		}
		tell_place(to, dwfl, wanted[i].from, i);
	}
	dwfl_end(dwfl);
	put(to, RECORD_DONE, &none, sizeof none, NULL, 0);
}
