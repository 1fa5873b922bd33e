/* memory.c - what the readers of live programs and of core files share. */
#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"

void *need(void *memory)
{
	if (memory == NULL)
		die("there is not enough memory");
	return memory;
}

bool memory_read(struct memory *m, uint64_t from, void *to, size_t size)
{
	struct piece piece = { from, to, size, false };

	m->ops->read(m, &piece, 1);
	return piece.done;
}

void memory_close(struct memory *m)
{
	if (m->ops != NULL && m->ops->close != NULL)
		m->ops->close(m);
	free(m->images);
	free(m->stretches);
	*m = (struct memory){ 0 };
}

void memory_add_image(struct memory *m, uint64_t at, const char *path)
{
	if ((m->image_count & (m->image_count + 1)) == 0) /* full: room for twice as many */
		m->images = need(realloc(m->images, (2 * m->image_count + 2) * sizeof *m->images));
	struct image *image = &m->images[m->image_count++];
	image->at = at;
	snprintf(image->path, sizeof image->path, "%s", path);
}

void memory_add_stretch(struct memory *m, uint64_t at, uint64_t size)
{
	if ((m->stretch_count & (m->stretch_count + 1)) == 0)
		m->stretches = need(realloc(m->stretches, (2 * m->stretch_count + 2) * sizeof *m->stretches));
	m->stretches[m->stretch_count++] = (struct stretch){ at, size };
}
