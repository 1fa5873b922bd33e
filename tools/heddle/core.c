/* core.c - the memory of a program in a core file.
 *
 * A core file has a segment for each mapping: where it was, and how much of it is in the file. What is not there cannot be read; a file whose end is
 * missing has fewer bytes than its segments say, and what is left can be read. Each number of the file is checked before it is used. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory.h"
#include "registers.h"

#define SEGMENTS_MAX (1u << 20)
#define NOTES_MAX ((uint64_t)64 << 20)	  /* bytes */
#define STRETCH_MAX ((uint64_t)64 << 20)  /* the data of a program or a library is no longer, as a rule */
#define STRETCHES_MAX ((uint64_t)1 << 30) /* of all of them */
#define PAGE 4096

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

struct segment {
	uint64_t at, size; /* as far as it is in the file */
	uint64_t offset;
};

struct core {
	int file;
	uint64_t length;
	struct segment *segments; /* by address */
	size_t count;
	struct thread {
		int64_t tid;
		struct registers registers;
	} * threads;
	size_t thread_count;
};

static bool read_file(const struct core *c, uint64_t offset, void *to, size_t size)
{
	if (offset > c->length || size > c->length - offset)
		return false;
	for (size_t got = 0; got < size;) {
		ssize_t n = pread(c->file, (char *)to + got, size - got, (off_t)(offset + got));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		got += (size_t)n;
	}
	return true;
}

/* The segment that has an address; NULL: none has. */
static const struct segment *find(const struct core *c, uint64_t at)
{
	size_t low = 0, high = c->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (c->segments[middle].at <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && at - c->segments[low - 1].at < c->segments[low - 1].size ? &c->segments[low - 1] : NULL;
}

static bool read_piece(const struct core *c, uint64_t from, char *to, size_t size)
{
	while (size > 0) {
		const struct segment *s = find(c, from);
		if (s == NULL)
			return false;
		uint64_t rest = s->size - (from - s->at);
		size_t n = size < rest ? size : (size_t)rest;
		if (!read_file(c, s->offset + (from - s->at), to, n))
			return false;
		from += n;
		to += n;
		size -= n;
	}
	return true;
}

static void core_read(struct memory *m, struct piece *pieces, size_t n)
{
	for (size_t i = 0; i < n; i++)
		pieces[i].done = read_piece(m->own, pieces[i].from, pieces[i].to, pieces[i].size);
}

static bool is_zero(const unsigned char *bytes, size_t n)
{
	return n == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, n - 1) == 0);
}

/* A page that was never used is a hole in the file, or has zeroes where the file has no holes. */
static uint64_t core_lowest_used(struct memory *m, uint64_t base, uint64_t size)
{
	const struct core *c = m->own;
	unsigned char page[PAGE];
	uint64_t at = base, end = base + size;

	while (at < end) {
		const struct segment *s = find(c, at);
		if (s == NULL)
			break;
		uint64_t offset = s->offset + (at - s->at), last = s->offset + s->size;
		off_t data = lseek(c->file, (off_t)offset, SEEK_DATA);
		if (data > 0 && (uint64_t)data > offset) {
			uint64_t skipped = ((uint64_t)data < last ? (uint64_t)data : last) - offset;
			at += skipped < PAGE ? PAGE : skipped / PAGE * PAGE;
			continue;
		}
		if (data < 0 && errno == ENXIO)
			break;
		if (!read_piece(c, at, (char *)page, sizeof page))
			break;
		if (!is_zero(page, sizeof page))
			return at;
		at += PAGE;
	}
	return end;
}

static void core_thread(struct memory *m, int64_t tid, char *text, size_t size)
{
	const struct core *c = m->own;

	text[0] = 0;
	for (size_t i = 0; i < c->thread_count; i++)
		if (c->threads[i].tid == tid)
			return;
	if (c->thread_count > 0)
		snprintf(text, size, ", which has ended");
}

static bool core_registers(struct memory *m, int64_t tid, struct registers *r)
{
	const struct core *c = m->own;

	for (size_t i = 0; i < c->thread_count; i++)
		if (c->threads[i].tid == tid) {
			*r = c->threads[i].registers;
			return r->known != 0;
		}
	return false;
}

static void drop(struct core *c)
{
	if (c->file >= 0)
		close(c->file);
	free(c->segments);
	free(c->threads);
	free(c);
}

static void core_close(struct memory *m)
{
	drop(m->own);
}

static const struct memory_ops core_ops = { core_read, core_lowest_used, core_thread, core_registers, core_close };

/* ---- notes ---- */

/* The kernel's table of mapped files: count and page size, three words for each, then their names. */
static void read_file_note(struct memory *m, const unsigned char *text, size_t size)
{
	uint64_t count, words[3];

	if (size < 16)
		return;
	memcpy(&count, text, sizeof count);
	if (count > (size - 16) / sizeof words)
		return;
	const char *name = (const char *)text + 16 + count * sizeof words, *end = (const char *)text + size;
	for (uint64_t i = 0; i < count && name < end; i++) {
		size_t length = strnlen(name, (size_t)(end - name));
		if (name + length == end)
			return;
		memcpy(words, text + 16 + i * sizeof words, sizeof words);
		if (words[2] == 0)
			memory_add_image(m, words[0], name);
		name += length + 1;
	}
}

static void read_note(struct memory *m, struct core *c, uint32_t type, const unsigned char *text, size_t size, char *program)
{
	struct elf_prstatus status;
	struct elf_prpsinfo info;

	if (type == NT_PRSTATUS && size >= sizeof status) {
		memcpy(&status, text, sizeof status);
		if ((c->thread_count & (c->thread_count + 1)) == 0)
			c->threads = need(realloc(c->threads, (2 * c->thread_count + 2) * sizeof *c->threads));
		struct thread *t = &c->threads[c->thread_count++];
		t->tid = status.pr_pid;
		if (!registers_of_thread(&t->registers, &status.pr_reg, sizeof status.pr_reg))
			t->registers.known = 0;
	} else if (type == NT_PRPSINFO && size >= sizeof info) {
		memcpy(&info, text, sizeof info);
		m->pid = info.pr_pid;
		snprintf(program, sizeof info.pr_fname + 1, "%.*s", (int)sizeof info.pr_fname, info.pr_fname);
		for (char *s = program; *s != 0; s++)
			if (*s < ' ' || *s > '~')
				*s = '?';
	} else if (type == NT_FILE) {
		read_file_note(m, text, size);
	}
}

static void read_notes(struct memory *m, struct core *c, uint64_t offset, uint64_t size, char *program)
{
	unsigned char *text;

	if (offset > c->length)
		return;
	if (size > c->length - offset)
		size = c->length - offset;
	if (size > NOTES_MAX)
		size = NOTES_MAX;
	text = need(malloc(size + 1));
	if (read_file(c, offset, text, size))
		for (uint64_t at = 0; size - at >= sizeof(Elf64_Nhdr);) {
			Elf64_Nhdr note;
			memcpy(&note, text + at, sizeof note);
			uint64_t name = at + sizeof note, contents = name + (((uint64_t)note.n_namesz + 3) & ~UINT64_C(3));
			uint64_t next = contents + (((uint64_t)note.n_descsz + 3) & ~UINT64_C(3));
			if (contents > size || note.n_descsz > size - contents)
				break;
			if (note.n_namesz == 5 && memcmp(text + name, "CORE", 5) == 0)
				read_note(m, c, note.n_type, text + contents, note.n_descsz, program);
			if (next > size)
				break;
			at = next;
		}
	free(text);
}

/* ---- segments ---- */

static int by_address(const void *a, const void *b)
{
	uint64_t x = ((const struct segment *)a)->at, y = ((const struct segment *)b)->at;
	return x < y ? -1 : x > y;
}

/* The number of program headers, which may be too large for its own field. */
static uint64_t count_headers(const struct core *c, const Elf64_Ehdr *header)
{
	Elf64_Shdr section;

	if (header->e_phnum != PN_XNUM)
		return header->e_phnum;
	return read_file(c, header->e_shoff, &section, sizeof section) ? section.sh_info : 0;
}

/* Takes in the program headers. Returns how long the file should be. */
static uint64_t read_segments(struct memory *m, struct core *c, const Elf64_Ehdr *header, char *program)
{
	uint64_t count = count_headers(c, header), wanted = 0, left = STRETCHES_MAX;

	if (count > SEGMENTS_MAX)
		count = SEGMENTS_MAX;
	if (header->e_phentsize != sizeof(Elf64_Phdr))
		count = 0;
	if (header->e_phoff + count * sizeof(Elf64_Phdr) > wanted)
		wanted = header->e_phoff + count * sizeof(Elf64_Phdr);
	c->segments = need(malloc((size_t)(count + 1) * sizeof *c->segments));
	for (uint64_t i = 0; i < count; i++) {
		Elf64_Phdr p;
		if (!read_file(c, header->e_phoff + i * sizeof p, &p, sizeof p))
			break;
		if (p.p_filesz > UINT64_MAX / 4 || p.p_offset > UINT64_MAX / 4 || p.p_vaddr > UINT64_MAX - p.p_filesz)
			continue;
		if (p.p_offset + p.p_filesz > wanted)
			wanted = p.p_offset + p.p_filesz;
		if (p.p_type == PT_NOTE)
			read_notes(m, c, p.p_offset, p.p_filesz, program);
		if (p.p_type != PT_LOAD || p.p_filesz == 0)
			continue;
		c->segments[c->count++] = (struct segment){ p.p_vaddr, p.p_filesz, p.p_offset };
		if (p.p_flags & PF_W && p.p_filesz <= STRETCH_MAX && p.p_filesz <= left) {
			memory_add_stretch(m, p.p_vaddr, p.p_filesz);
			left -= p.p_filesz;
		}
	}
	qsort(c->segments, c->count, sizeof *c->segments, by_address);
	return wanted;
}

bool core_open(struct memory *m, const char *path, char *why, size_t why_size)
{
	struct core *c = need(calloc(1, sizeof *c));
	struct stat status;
	Elf64_Ehdr header;
	char program[32] = "a program";

	*m = (struct memory){ .live = false };
	c->file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (c->file < 0 || fstat(c->file, &status) != 0) {
		snprintf(why, why_size, "%s: %s", path, strerror(errno));
		drop(c);
		return false;
	}
	c->length = S_ISREG(status.st_mode) ? (uint64_t)status.st_size : 0;
	if (!read_file(c, 0, &header, sizeof header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
		snprintf(why, why_size, "%s is neither a core file nor the number or name of a program", path);
		drop(c);
		return false;
	}
	if (header.e_type != ET_CORE) {
		snprintf(why, why_size, "%s is a program or a library, not a core file: start it, and give its process id",
			 path);
		drop(c);
		return false;
	}
	if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_machine != MACHINE) {
		snprintf(why, why_size, "%s is a core file of another kind of machine", path);
		drop(c);
		return false;
	}
	uint64_t wanted = read_segments(m, c, &header, program);
	m->truncated = wanted > c->length;
	for (size_t i = 0; i < c->count; i++) /* what the kernel has not named may have a file's first page, too */
		memory_add_image(m, c->segments[i].at, "");
	snprintf(m->name, sizeof m->name, "core file %.300s, of %s%s", path, program,
		 m->truncated ? ", which is truncated" : "");
	m->own = c;
	m->ops = &core_ops;
	return true;
}
