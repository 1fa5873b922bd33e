/* os/source.c - the function, file and line of an address, for reports.
 *
 * Owns:      a reader of ELF symbols and of DWARF line tables, versions 2 to 5 (`.debug_line`; dwarfstd.org, "Line Number Information").
 *            Not compressed ones, and not those in separate files: then there is no line.
 * Callers:   the reports of rt/.
 *
 * A process that reports a deadlock starts no addr2line: the program may wait for its children, or have forbidden itself to have any. A
 * file may be damaged: every read is checked, and what makes no sense ends the search. */
#define _GNU_SOURCE
#include "os/source.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes that are read in order; `bad` once a read went beyond their end. */
struct bytes {
	const uint8_t *at, *end;
	bool bad;
};

/* A module's file, and the addresses that are looked for in it. */
struct module {
	struct bytes file, lines, line_strings, strings, symbols, symbol_names;
	struct hd__source *places;
	int n;
	uintptr_t base, low, high; /* of the module; of the places that are its own, as offsets */
};

/* ---- reading ---- */

static uint64_t number(struct bytes *b, size_t size)
{
	uint64_t value = 0;

	if ((size_t)(b->end - b->at) < size || size > sizeof value) {
		b->bad = true;
		b->at = b->end;
		return 0;
	}
	for (size_t i = 0; i < size; i++)
		value |= (uint64_t)b->at[i] << 8 * i;
	b->at += size;
	return value;
}

static void skip(struct bytes *b, uint64_t n)
{
	if (n > (uint64_t)(b->end - b->at)) {
		b->bad = true;
		n = (uint64_t)(b->end - b->at);
	}
	b->at += n;
}

enum sign { UNSIGNED, SIGNED };

/* A number of any length: seven bits in each byte, the lowest first. SIGNED: the last of them stands for all that would follow. */
static uint64_t leb(struct bytes *b, enum sign sign)
{
	uint64_t value = 0, byte;
	unsigned shift = 0;

	do {
		byte = number(b, 1);
		if (shift < 64)
			value |= (byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (sign == SIGNED && shift < 64 && byte & 0x40)
		value |= ~UINT64_C(0) << shift;
	return value;
}

/* "" when it does not end. */
static const char *string(struct bytes *b)
{
	const uint8_t *zero = memchr(b->at, 0, (size_t)(b->end - b->at));
	const char *text = (const char *)b->at;

	if (zero == NULL) {
		b->bad = true;
		b->at = b->end;
		return "";
	}
	b->at = zero + 1;
	return text;
}

static struct bytes part(struct bytes whole, uint64_t offset, uint64_t size)
{
	uint64_t all = (uint64_t)(whole.end - whole.at);

	if (offset > all || size > all - offset)
		return (struct bytes){ whole.at, whole.at, true };
	return (struct bytes){ whole.at + offset, whole.at + offset + size, false };
}

static const char *string_at(struct bytes strings, uint64_t offset)
{
	struct bytes b = part(strings, offset, 0);

	b.end = strings.end;
	return b.bad ? "" : string(&b);
}

static void copy_name(char to[64], const char *path)
{
	const char *slash = strrchr(path, '/');

	snprintf(to, 64, "%s", slash != NULL ? slash + 1 : path);
}

/* ---- the line table of one unit ---- */

enum { PATH = 1, DIRECTORY = 2 };
enum {
	BLOCK = 0x09,
	DATA1 = 0x0b,
	DATA2 = 0x05,
	DATA4 = 0x06,
	DATA8 = 0x07,
	DATA16 = 0x1e,
	STRING = 0x08,
	STRP = 0x0e,
	LINE_STRP = 0x1f,
	UDATA = 0x0f
};

struct unit {
	unsigned version, offset_size, min_length, line_range, opcode_base;
	int line_base;
	const uint8_t *lengths; /* of the operands of opcodes 1 to opcode_base - 1 */
	struct bytes tables;	/* of directories and files */
	struct bytes program;
};

/* One value of an entry of a table of version 5: its text, or NULL and *value is a number. */
static const char *entry(const struct module *m, const struct unit *u, struct bytes *b, uint64_t form, uint64_t *value)
{
	switch (form) {
	case STRING:
		return string(b);
	case LINE_STRP:
		return string_at(m->line_strings, number(b, u->offset_size));
	case STRP:
		return string_at(m->strings, number(b, u->offset_size));
	case UDATA:
		*value = leb(b, UNSIGNED);
		break;
	case DATA1:
		*value = number(b, 1);
		break;
	case DATA2:
		*value = number(b, 2);
		break;
	case DATA4:
		*value = number(b, 4);
		break;
	case DATA8:
		*value = number(b, 8);
		break;
	case DATA16:
		skip(b, 16);
		break;
	case BLOCK:
		skip(b, leb(b, UNSIGNED));
		break;
	default:
		b->bad = true;
	}
	return NULL;
}

/* The path of entry number `wanted` of a table of version 5, which is read to its end, and the number of its directory. */
static const char *path_in_table(const struct module *m, const struct unit *u, struct bytes *b, uint64_t wanted,
				 uint64_t *directory)
{
	uint64_t formats = number(b, 1), kind[8], form[8];
	const char *path = "";

	if (formats > 8)
		b->bad = true;
	for (uint64_t i = 0; i < formats && !b->bad; i++) {
		kind[i] = leb(b, UNSIGNED);
		form[i] = leb(b, UNSIGNED);
	}
	uint64_t entries = leb(b, UNSIGNED);
	for (uint64_t i = 0; i < entries && !b->bad; i++)
		for (uint64_t j = 0; j < formats && !b->bad; j++) {
			uint64_t value = 0;
			const char *text = entry(m, u, b, form[j], &value);
			if (i == wanted && kind[j] == PATH && text != NULL)
				path = text;
			if (i == wanted && kind[j] == DIRECTORY)
				*directory = value;
		}
	return path;
}

/* As path_in_table, for the tables of versions 2 to 4: directories, or files. */
static const char *path_in_list(struct bytes *b, bool files, uint64_t wanted, uint64_t *directory)
{
	const char *found = "", *path;

	for (uint64_t i = 1; *(path = string(b)) != 0; i++) {
		uint64_t in = files ? leb(b, UNSIGNED) : 0;
		if (files) { /* time, length */
			leb(b, UNSIGNED);
			leb(b, UNSIGNED);
		}
		if (i == wanted) {
			found = path;
			*directory = in;
		}
	}
	return found;
}

/* A relative directory is below that of the compilation, which only version 5 tells: number 0. clang's paths have directories of their own. */
static void name_file(const struct module *m, const struct unit *u, uint64_t file, struct hd__source *p)
{
	struct bytes b = u->tables, again = b;
	uint64_t in = 0, none;
	const char *path, *directory, *root = "";

	if (u->version >= 5) {
		path_in_table(m, u, &b, UINT64_MAX, &none);
		path = path_in_table(m, u, &b, file, &in);
		b = again;
		root = path_in_table(m, u, &b, 0, &none);
		directory = path_in_table(m, u, &again, in, &none);
	} else {
		path_in_list(&b, false, 0, &none);
		path = path_in_list(&b, true, file, &in);
		directory = path_in_list(&again, false, in, &none);
	}
	const char *slash = strrchr(path, '/');
	int below = slash != NULL ? (int)(slash - path) : 0;
	if (path[0] == '/')
		in = 0, directory = "";
	bool relative = directory[0] != '/' && in != 0;
	snprintf(p->directory, sizeof p->directory, "%s%s%s%s%.*s", relative ? root : "", relative ? "/" : "", directory,
		 below > 0 && path[0] != '/' ? "/" : "", below, path);
	copy_name(p->file, path);
}

struct row {
	uint64_t address, file;
	int64_t line;
};

/* What is between two rows of the table belongs to the first. */
static void match(const struct module *m, const struct unit *u, const struct row *row, uint64_t end)
{
	if (row->address > m->high || end <= m->low)
		return;
	for (int i = 0; i < m->n; i++) {
		struct hd__source *p = &m->places[i];
		uint64_t at = p->address - 1 - m->base;
		if (at < row->address || at >= end || p->line != 0 || row->line <= 0)
			continue;
		p->line = (unsigned)row->line;
		name_file(m, u, row->file, p);
	}
}

/* Runs the line program of a unit. */
static void run_lines(const struct module *m, const struct unit *u)
{
	const struct row first = { .file = 1, .line = 1 };
	struct bytes b = u->program;
	struct row row = first, last = first;
	bool has_last = false;

	while (b.at < b.end && !b.bad) {
		unsigned op = (unsigned)number(&b, 1);
		bool emits = false, ends = false;
		if (op >= u->opcode_base) {
			unsigned n = op - u->opcode_base;
			row.address += (uint64_t)(n / u->line_range) * u->min_length;
			row.line += u->line_base + (int)(n % u->line_range);
			emits = true;
		} else if (op == 0) { /* extended: it says how long it is */
			uint64_t length = leb(&b, UNSIGNED);
			struct bytes operand = part(b, 0, length);
			skip(&b, length);
			unsigned what = (unsigned)number(&operand, 1);
			if (what == 1)
				emits = ends = true;
			else if (what == 2)
				row.address = number(&operand, (size_t)(operand.end - operand.at));
		} else if (op == 1) {
			emits = true;
		} else if (op == 2) {
			row.address += leb(&b, UNSIGNED) * u->min_length;
		} else if (op == 3) {
			row.line += (int64_t)leb(&b, SIGNED);
		} else if (op == 4) {
			row.file = leb(&b, UNSIGNED);
		} else if (op == 8) {
			row.address += (uint64_t)((255 - u->opcode_base) / u->line_range) * u->min_length;
		} else if (op == 9) {
			row.address += number(&b, 2);
		} else {
			for (unsigned i = 0; i < u->lengths[op - 1]; i++)
				leb(&b, UNSIGNED);
		}
		if (!emits)
			continue;
		if (has_last && last.address != 0) /* what the linker has left out begins at 0 */
			match(m, u, &last, row.address);
		last = row;
		has_last = !ends;
		if (ends)
			row = first;
	}
}

/* Reads the header of a unit. False: not one that we know. */
static bool read_unit(struct bytes b, unsigned offset_size, struct unit *u)
{
	*u = (struct unit){ .version = (unsigned)number(&b, 2), .offset_size = offset_size };
	if (u->version < 2 || u->version > 5)
		return false;
	if (u->version >= 5)
		skip(&b, 2); /* sizes of an address and of a segment selector */
	uint64_t length = number(&b, offset_size);
	u->program = part(b, length, (uint64_t)(b.end - b.at) - (length <= (uint64_t)(b.end - b.at) ? length : 0));
	u->min_length = (unsigned)number(&b, 1);
	if (u->version >= 4)
		skip(&b, 1); /* operations in an instruction */
	skip(&b, 1);	     /* is_stmt */
	u->line_base = (int8_t)number(&b, 1);
	u->line_range = (unsigned)number(&b, 1);
	u->opcode_base = (unsigned)number(&b, 1);
	u->lengths = b.at;
	skip(&b, u->opcode_base > 0 ? u->opcode_base - 1 : 0);
	u->tables = b;
	return !b.bad && !u->program.bad && u->line_range != 0 && u->opcode_base != 0;
}

static void find_lines(const struct module *m)
{
	struct bytes b = m->lines;

	while (b.at < b.end && !b.bad) {
		struct unit unit;
		unsigned offset_size = 4;
		uint64_t length = number(&b, 4);
		if (length == 0xffffffff) {
			offset_size = 8;
			length = number(&b, 8);
		}
		struct bytes own = part(b, 0, length);
		skip(&b, length);
		if (!own.bad && read_unit(own, offset_size, &unit))
			run_lines(m, &unit);
	}
}

/* ---- a module ---- */

/* Without what a compiler has added to it: ".constprop.0". */
static void copy_function(char to[64], const char *name)
{
	snprintf(to, 64, "%.*s", (int)strcspn(name, "."), name);
}

static void find_functions(const struct module *m)
{
	for (struct bytes b = m->symbols; (size_t)(b.end - b.at) >= sizeof(Elf64_Sym); b.at += sizeof(Elf64_Sym)) {
		Elf64_Sym symbol;
		memcpy(&symbol, b.at, sizeof symbol);
		if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_value > m->high ||
		    symbol.st_value + symbol.st_size <= m->low)
			continue;
		for (int i = 0; i < m->n; i++) {
			struct hd__source *p = &m->places[i];
			uintptr_t at = p->address - 1 - m->base;
			if (at >= symbol.st_value && at - symbol.st_value < symbol.st_size && p->function[0] == 0)
				copy_function(p->function, string_at(m->symbol_names, symbol.st_name));
		}
	}
}

/* Finds the sections that are needed. */
static void find_sections(struct module *m)
{
	Elf64_Ehdr header;
	Elf64_Shdr names, section;

	if ((size_t)(m->file.end - m->file.at) < sizeof header)
		return;
	memcpy(&header, m->file.at, sizeof header);
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_shentsize != sizeof section)
		return;
	struct bytes table = part(m->file, header.e_shoff, (uint64_t)header.e_shnum * sizeof section);
	if (table.bad || header.e_shstrndx >= header.e_shnum)
		return;
	memcpy(&names, table.at + header.e_shstrndx * sizeof section, sizeof names);
	struct bytes name_bytes = part(m->file, names.sh_offset, names.sh_size);
	for (unsigned i = 0; i < header.e_shnum; i++) {
		memcpy(&section, table.at + i * sizeof section, sizeof section);
		const char *name = string_at(name_bytes, section.sh_name);
		if (section.sh_type == SHT_NOBITS || section.sh_flags & SHF_COMPRESSED)
			continue;
		struct bytes content = part(m->file, section.sh_offset, section.sh_size);
		if (strcmp(name, ".debug_line") == 0)
			m->lines = content;
		else if (strcmp(name, ".debug_line_str") == 0)
			m->line_strings = content;
		else if (strcmp(name, ".debug_str") == 0)
			m->strings = content;
		else if (m->symbols.at == m->symbols.end && strcmp(name, ".dynsym") == 0) /* all that a stripped library has */
			m->symbols = content;
		else if (m->symbol_names.at == m->symbol_names.end && strcmp(name, ".dynstr") == 0)
			m->symbol_names = content;
		else if (strcmp(name, ".symtab") == 0)
			m->symbols = content;
		else if (strcmp(name, ".strtab") == 0)
			m->symbol_names = content;
	}
}

static void read_module(struct module *m, const char *path)
{
	struct stat stat;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	void *file = fstat(fd, &stat) == 0 && stat.st_size > 0 ? mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0)
							       : MAP_FAILED;
	close(fd);
	if (file == MAP_FAILED)
		return;
	m->file = (struct bytes){ file, (const uint8_t *)file + stat.st_size, false };
	find_sections(m);
	find_functions(m);
	find_lines(m);
	munmap(file, (size_t)stat.st_size);
}

struct search {
	struct hd__source *places;
	int n;
};

/* Where a file is, for other programs. */
static void find_path(const char *path, char whole[HD__SOURCE_PATH])
{
	ssize_t n = path[0] == '/' ? readlink(path, whole, HD__SOURCE_PATH - 1) : -1; /* /proc/self/exe */

	if (n > 0 && strncmp(path, "/proc/", 6) == 0)
		whole[n] = 0;
	else
		snprintf(whole, HD__SOURCE_PATH, "%s", path);
}

/* The places in this module are found in its file. */
static int look_into(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *s = arg;
	const uint8_t nothing = 0;
	const struct bytes none = { &nothing, &nothing, false };
	struct module m = { none, none, none, none, none, none, s->places, s->n, info->dlpi_addr, UINTPTR_MAX, 0 };
	const char *path = info->dlpi_name[0] != 0 ? info->dlpi_name : "/proc/self/exe";
	char program[64] = "", whole[HD__SOURCE_PATH] = "";

	(void)size;
	if (info->dlpi_name[0] == 0)
		copy_name(program, program_invocation_name);
	for (int i = 0; i < s->n; i++)
		for (int j = 0; j < info->dlpi_phnum; j++) {
			const ElfW(Phdr) *segment = &info->dlpi_phdr[j];
			uintptr_t at = s->places[i].address - 1 - m.base;
			if (segment->p_type != PT_LOAD || at < segment->p_vaddr || at - segment->p_vaddr >= segment->p_memsz)
				continue;
			s->places[i].offset = at; /* of the call */
			copy_name(s->places[i].module, program[0] != 0 ? program : path);
			if (whole[0] == 0)
				find_path(path, whole);
			memcpy(s->places[i].path, whole, sizeof whole);
			m.low = at < m.low ? at : m.low;
			m.high = at > m.high ? at : m.high;
		}
	if (m.low <= m.high)
		read_module(&m, path);
	return 0;
}

void hd__os_find_sources(struct hd__source *places, int n)
{
	int saved = errno;
	struct search s = { places, n };

	for (int i = 0; i < n; i++)
		places[i] = (struct hd__source){ .address = places[i].address };
	dl_iterate_phdr(look_into, &s);
	errno = saved;
}
