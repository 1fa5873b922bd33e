/* modules.c - the program and the libraries that are mapped in a program's memory.
 *
 * Owns:       struct modules.
 * Invariant:  a file counts as a module's only if it has the same build id as what is in memory, or, where there is none, the same program headers. So a program
 *             that was built anew while it ran is not told of by the wrong file.
 *
 * All that is read here was written by another program: each number is checked before it is used. */
#define _GNU_SOURCE
#include "modules.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADERS_MAX 64
#define NOTES_MAX 4096			/* bytes, in which the build id is looked for */
#define IMAGE_MAX ((uint64_t)256 << 20) /* bytes of a file that is made of memory */
#define MODULES_MAX 4096
#define PAGE 4096

struct headers {
	Elf64_Ehdr elf;
	Elf64_Phdr program[HEADERS_MAX];
};

static bool are_good(const struct headers *h)
{
	return memcmp(h->elf.e_ident, ELFMAG, SELFMAG) == 0 && h->elf.e_ident[EI_CLASS] == ELFCLASS64 &&
	       h->elf.e_ident[EI_DATA] == ELFDATA2LSB && h->elf.e_phentsize == sizeof h->program[0] && h->elf.e_phnum > 0 &&
	       h->elf.e_phnum <= HEADERS_MAX && (h->elf.e_type == ET_DYN || h->elf.e_type == ET_EXEC);
}

static bool read_headers(struct memory *m, uint64_t at, struct headers *h)
{
	memset(h, 0, sizeof *h);
	return memory_read(m, at, &h->elf, sizeof h->elf) && are_good(h) &&
	       memory_read(m, at + h->elf.e_phoff, h->program, h->elf.e_phnum * sizeof h->program[0]);
}

/* Looks for the build id in the bytes of a segment of notes. */
static size_t find_build_id(const unsigned char *notes, size_t size, unsigned char *id)
{
	for (size_t at = 0; size - at >= sizeof(Elf64_Nhdr);) {
		Elf64_Nhdr note;
		memcpy(&note, notes + at, sizeof note);
		uint64_t name = at + sizeof note, contents = name + (((uint64_t)note.n_namesz + 3) & ~UINT64_C(3));
		uint64_t next = contents + (((uint64_t)note.n_descsz + 3) & ~UINT64_C(3));
		if (contents > size || note.n_descsz > size - contents)
			break;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(notes + name, "GNU", 4) == 0 &&
		    note.n_descsz > 0 && note.n_descsz <= BUILD_ID_MAX) {
			memcpy(id, notes + contents, note.n_descsz);
			return note.n_descsz;
		}
		if (next > size)
			break;
		at = (size_t)next;
	}
	return 0;
}

static bool read_module(struct memory *m, const struct image *image, struct module *module)
{
	unsigned char notes[NOTES_MAX];
	struct headers h;
	bool based = false;

	if (!read_headers(m, image->at, &h))
		return false;
	*module = (struct module){ .at = image->at, .end = image->at };
	memcpy(module->path, image->path, sizeof module->path);
	for (unsigned i = 0; i < h.elf.e_phnum; i++) {
		const Elf64_Phdr *p = &h.program[i];
		if (p->p_type != PT_LOAD)
			continue;
		if (!based) /* the first is the one with this header */
			module->bias = image->at - (p->p_vaddr - p->p_offset);
		based = true;
		uint64_t from = module->bias + p->p_vaddr, to = from + p->p_memsz;
		if (to < from || from < image->at || to - image->at > UINT64_C(1) << 40)
			return false;
		if (to > module->end)
			module->end = to;
		if (p->p_flags & PF_X && module->texts < TEXTS_MAX) {
			module->text[module->texts].from = from;
			module->text[module->texts++].to = to;
		}
	}
	for (unsigned i = 0; i < h.elf.e_phnum && based && module->build_id_size == 0; i++) {
		const Elf64_Phdr *p = &h.program[i];
		size_t size = p->p_filesz < sizeof notes ? (size_t)p->p_filesz : sizeof notes;
		if (p->p_type == PT_NOTE && memory_read(m, module->bias + p->p_vaddr, notes, size))
			module->build_id_size = find_build_id(notes, size, module->build_id);
	}
	return based && module->end > module->at;
}

static int by_address(const void *a, const void *b)
{
	const struct module *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return (x->path[0] == 0) - (y->path[0] == 0); /* one with a name first */
}

void modules_find(struct modules *all, struct memory *m)
{
	size_t n = 0;

	*all = (struct modules){ 0 };
	for (size_t i = 0; i < m->image_count && all->count < MODULES_MAX; i++) {
		if ((all->count & (all->count + 1)) == 0)
			all->list = need(realloc(all->list, (2 * all->count + 2) * sizeof *all->list));
		all->count += read_module(m, &m->images[i], &all->list[all->count]);
	}
	qsort(all->list, all->count, sizeof *all->list, by_address);
	for (size_t i = 0; i < all->count; i++) /* what lies in another one is a file that was only read, or a part of it */
		if (n == 0 || all->list[i].at >= all->list[n - 1].end)
			all->list[n++] = all->list[i];
	all->count = n;
}

void modules_drop(struct modules *all)
{
	free(all->list);
	*all = (struct modules){ 0 };
}

const struct module *modules_at(const struct modules *all, uint64_t address)
{
	size_t low = 0, high = all->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (all->list[middle].at <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && address < all->list[low - 1].end ? &all->list[low - 1] : NULL;
}

bool modules_have_code(const struct modules *all, uint64_t address)
{
	const struct module *module = modules_at(all, address);

	for (unsigned i = 0; module != NULL && i < module->texts; i++)
		if (address >= module->text[i].from && address < module->text[i].to)
			return true;
	return false;
}

/* ---- files ---- */

static bool read_all(int fd, void *to, size_t size, uint64_t offset)
{
	return pread(fd, to, size, (off_t)offset) == (ssize_t)size;
}

static size_t build_id_of_file(int fd, const struct headers *h, unsigned char *id)
{
	unsigned char notes[NOTES_MAX];
	size_t found = 0;

	for (unsigned i = 0; i < h->elf.e_phnum && found == 0; i++) {
		size_t size = h->program[i].p_filesz < sizeof notes ? (size_t)h->program[i].p_filesz : sizeof notes;
		if (h->program[i].p_type == PT_NOTE && read_all(fd, notes, size, h->program[i].p_offset))
			found = find_build_id(notes, size, id);
	}
	return found;
}

/* Whether a file is what the program has loaded. */
static bool is_file_of(const struct module *module, struct memory *m, int fd)
{
	unsigned char id[BUILD_ID_MAX];
	struct headers file = { 0 }, memory;

	if (!read_all(fd, &file.elf, sizeof file.elf, 0) || !are_good(&file) ||
	    !read_all(fd, file.program, file.elf.e_phnum * sizeof file.program[0], file.elf.e_phoff))
		return false;
	size_t size = build_id_of_file(fd, &file, id);
	if (size != module->build_id_size)
		return false;
	if (size > 0)
		return memcmp(id, module->build_id, size) == 0;
	return read_headers(m, module->at, &memory) && memcmp(&file, &memory, sizeof file) == 0;
}

static int open_file(const char *path)
{
	struct stat status;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd >= 0 && (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* The file of a module, wherever it may be: below the root of a program in a container; one that was deleted, as the kernel still has it. */
static int find_file(const struct module *module, struct memory *m, const char *root, bool *other)
{
	char paths[3][600] = { "", "", "" }, proc[64];

	*other = false;
	if (module->path[0] != '/')
		return -1;
	if (root != NULL) {
		snprintf(paths[0], sizeof paths[0], "%.300s%s", root, module->path);
	} else if (m->live) {
		snprintf(paths[0], sizeof paths[0], "/proc/%d/root%s", (int)m->pid, module->path);
		snprintf(proc, sizeof proc, "/proc/%d/exe", (int)m->pid);
		ssize_t n = readlink(proc, paths[2], sizeof paths[2] - 1);
		if (n > 0 && (size_t)n == strlen(module->path) && memcmp(paths[2], module->path, (size_t)n) == 0)
			memcpy(paths[1], proc, sizeof proc);
		paths[2][0] = 0;
	}
	if (root == NULL)
		snprintf(paths[2], sizeof paths[2], "%s", module->path);
	for (int i = 0; i < 3; i++) {
		int fd = paths[i][0] != 0 ? open_file(paths[i]) : -1;
		if (fd >= 0 && is_file_of(module, m, fd))
			return fd;
		if (fd >= 0) {
			*other = true;
			close(fd);
		}
	}
	return -1;
}

static bool copy_page(struct memory *m, int fd, uint64_t from, uint64_t offset, size_t size)
{
	unsigned char page[PAGE];

	return memory_read(m, from, page, size) && pwrite(fd, page, size, (off_t)offset) == (ssize_t)size;
}

/* Makes a file of what is in memory: it has no sections, and holes for what could not be read. */
static int make_file(const struct module *module, struct memory *m)
{
	struct headers h;
	int fd = memfd_create("module", MFD_CLOEXEC);

	if (fd < 0 || !read_headers(m, module->at, &h) || h.elf.e_phoff > IMAGE_MAX)
		goto fail;
	h.elf.e_shoff = 0;
	h.elf.e_shnum = h.elf.e_shstrndx = 0;
	uint64_t left = IMAGE_MAX, length = 0;
	for (unsigned i = 0; i < h.elf.e_phnum; i++) {
		const Elf64_Phdr *p = &h.program[i];
		if (p->p_type != PT_LOAD || p->p_filesz > left || p->p_offset > IMAGE_MAX)
			continue;
		left -= p->p_filesz;
		uint64_t first = module->bias + p->p_vaddr;
		if (p->p_offset + p->p_filesz > length)
			length = p->p_offset + p->p_filesz;
		if (ftruncate(fd, (off_t)length) != 0)
			goto fail;
		for (uint64_t at = 0; at < p->p_filesz;) {
			uint64_t n = PAGE - (first + at) % PAGE;
			if (n > p->p_filesz - at)
				n = p->p_filesz - at;
			if (!copy_page(m, fd, first + at, p->p_offset + at, (size_t)n))
				break; /* as a rule, all of the segment is missing */
			at += n;
		}
	}
	if (pwrite(fd, &h.elf, sizeof h.elf, 0) == (ssize_t)sizeof h.elf &&
	    pwrite(fd, h.program, h.elf.e_phnum * sizeof h.program[0], (off_t)h.elf.e_phoff) ==
		    (ssize_t)(h.elf.e_phnum * sizeof h.program[0]))
		return fd;
fail:
	if (fd >= 0)
		close(fd);
	return -1;
}

int module_open(const struct module *module, struct memory *m, const char *root, char *why, size_t why_size)
{
	bool other;
	int fd = find_file(module, m, root, &other);

	why[0] = 0;
	if (fd >= 0)
		return fd;
	if (module->path[0] == '/')
		snprintf(why, why_size, "%s %s: what is told of it is what its memory has", module->path,
			 other ? "is another file than the one that the program has loaded" : "cannot be opened");
	return make_file(module, m);
}
