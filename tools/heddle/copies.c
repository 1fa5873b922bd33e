/* copies.c - where a program has its heddle: by the notes of the ELF images that are mapped; or, where a core file has none of these, by the first words of the
 * description. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "census.h"

#define HEADERS_MAX 64
#define NOTES_MAX 65536 /* bytes of notes in an image */
#define BLOCK 65536
#define ALIGNMENT 8 /* of a description */

/* Reads the description at an address. False: there is none. */
static bool read_copy(struct memory *m, uint64_t at, struct copy *copy)
{
	struct hd__inside *d = &copy->inside;
	const char magic[sizeof d->magic] = HD__INSIDE_MAGIC;
	const size_t head = offsetof(struct hd__inside, field);

	*copy = (struct copy){ .at = at };
	if (!memory_read(m, at, d, head) || memcmp(d->magic, magic, sizeof magic) != 0)
		return false;
	copy->version = d->version;
	d->library[sizeof d->library - 1] = 0;
	if (d->version != HD__INSIDE_VERSION)
		return true;
	/* A library of another date may have more fields than we know, or fewer: then they are not there. */
	struct hd__inside_field fields[HD__INSIDE_FIELDS_MAX];
	uint32_t n = d->fields, known = n < HD__INSIDE_FIELDS ? n : HD__INSIDE_FIELDS;
	uint32_t waits = d->waits;
	if (n == 0 || n > HD__INSIDE_FIELDS_MAX || waits > HD__INSIDE_WAITS ||
	    !memory_read(m, at + head, fields, n * sizeof fields[0]))
		return true;
	memset(d->field, 0, sizeof d->field);
	memcpy(d->field, fields, known * sizeof fields[0]);
	memset(d->wait, 0, sizeof d->wait);
	if (!memory_read(m, at + head + n * sizeof fields[0], d->wait, sizeof d->wait))
		return true;
	for (unsigned i = 0; i < HD__INSIDE_WAITS; i++) {
		d->wait[i].call[sizeof d->wait[i].call - 1] = 0;
		d->wait[i].object[sizeof d->wait[i].object - 1] = 0;
		for (char *s = d->wait[i].call; *s != 0; s++)
			*s = *s < ' ' || *s > '~' ? '?' : *s;
		for (char *s = d->wait[i].object; *s != 0; s++)
			*s = *s < ' ' || *s > '~' ? '?' : *s;
	}
	for (char *s = d->library; *s != 0; s++)
		*s = *s < ' ' || *s > '~' ? '?' : *s;
	copy->known = d->sched == 0 || d->self == at; /* before the first hd_run it does not know its address */
	return true;
}

/* The address that a note of ours leads to; 0: it is none. */
static uint64_t follow(const unsigned char *note, size_t size, uint64_t at)
{
	struct hd__inside_note contents;
	Elf64_Nhdr header;
	size_t name = (sizeof HD__INSIDE_OWNER + 3) & ~(size_t)3;

	if (size < sizeof header + name + sizeof contents)
		return 0;
	memcpy(&header, note, sizeof header);
	if (header.n_type != HD__INSIDE_NOTE || header.n_namesz != sizeof HD__INSIDE_OWNER ||
	    header.n_descsz < sizeof contents || memcmp(note + sizeof header, HD__INSIDE_OWNER, sizeof HD__INSIDE_OWNER) != 0)
		return 0;
	memcpy(&contents, note + sizeof header + name, sizeof contents);
	return at + sizeof header + name + offsetof(struct hd__inside_note, offset) + (uint64_t)contents.offset;
}

/* Looks through the notes of a segment; adds what they lead to. */
static size_t look_through_notes(struct memory *m, uint64_t at, uint64_t size, const char *path, struct copy *copies,
				 size_t max)
{
	unsigned char *notes = need(malloc(NOTES_MAX));
	size_t n = 0, length = size < NOTES_MAX ? (size_t)size : NOTES_MAX;

	if (memory_read(m, at, notes, length))
		for (size_t i = 0; n < max && length - i >= sizeof(Elf64_Nhdr);) {
			Elf64_Nhdr header;
			memcpy(&header, notes + i, sizeof header);
			uint64_t to = follow(notes + i, length - i, at + i);
			if (to != 0 && read_copy(m, to, &copies[n])) {
				memcpy(copies[n].path, path, sizeof copies[n].path);
				n++;
			}
			uint64_t step = sizeof header + (((uint64_t)header.n_namesz + 3) & ~UINT64_C(3)) +
					(((uint64_t)header.n_descsz + 3) & ~UINT64_C(3));
			if (step > length - i)
				break;
			i += (size_t)step;
		}
	free(notes);
	return n;
}

static size_t look_through_image(struct memory *m, const struct image *image, struct copy *copies, size_t max)
{
	Elf64_Ehdr header;
	Elf64_Phdr headers[HEADERS_MAX];
	size_t n = 0;

	if (!memory_read(m, image->at, &header, sizeof header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof headers[0] || header.e_phnum > HEADERS_MAX ||
	    !memory_read(m, image->at + header.e_phoff, headers, header.e_phnum * sizeof headers[0]))
		return 0;
	uint64_t base = image->at; /* what its addresses count from */
	for (unsigned i = 0; i < header.e_phnum; i++)
		if (headers[i].p_type == PT_LOAD) { /* the first is the one with this header */
			base = image->at - (headers[i].p_vaddr - headers[i].p_offset);
			break;
		}
	for (unsigned i = 0; i < header.e_phnum && n < max; i++)
		if (headers[i].p_type == PT_NOTE)
			n += look_through_notes(m, base + headers[i].p_vaddr, headers[i].p_memsz, image->path, copies + n,
						max - n);
	return n;
}

/* Looks for the first words of a description. */
static size_t look_through_stretch(struct memory *m, const struct stretch *s, struct copy *copies, size_t max)
{
	const char magic[16] = HD__INSIDE_MAGIC;
	unsigned char *block = need(malloc(BLOCK));
	size_t n = 0;

	for (uint64_t at = 0; at < s->size && n < max; at += BLOCK - sizeof magic) { /* blocks overlap */
		size_t length = s->size - at < BLOCK ? (size_t)(s->size - at) : BLOCK;
		if (!memory_read(m, s->at + at, block, length))
			continue;
		for (size_t i = 0; i + sizeof magic <= length && n < max; i += ALIGNMENT)
			if (memcmp(block + i, magic, sizeof magic) == 0 && read_copy(m, s->at + at + i, &copies[n]) &&
			    copies[n].inside.self == s->at + at + i)
				n++;
	}
	free(block);
	return n;
}

static bool is_listed(const struct copy *copies, size_t n, uint64_t at)
{
	for (size_t i = 0; i < n; i++)
		if (copies[i].at == at)
			return true;
	return false;
}

size_t copies_find(struct memory *m, struct copy *copies, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < m->image_count && n < max; i++) {
		size_t found = look_through_image(m, &m->images[i], copies + n, max - n);
		for (size_t end = n + found; n < end;) /* a file may be mapped twice, or named twice in a core file */
			if (is_listed(copies, n, copies[n].at))
				copies[n] = copies[--end];
			else
				n++;
	}
	for (size_t i = 0; n == 0 && i < m->stretch_count; i++)
		n = look_through_stretch(m, &m->stretches[i], copies, max);
	return n;
}
