/* resolve.c - `heddle bt --resolve`: puts names behind the places in a text, such as /usr/bin/server+0x12a4. */
#define _GNU_SOURCE
#include "resolve.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"
#include "traces.h"

#define TEXT_MAX ((size_t)64 << 20) /* that is read at a time */
#define PATH_MOST 1000

/* A place in the text. */
struct mention {
	size_t end; /* where its names go */
	char *path;
	uint64_t offset;
	uint32_t question; /* which of those that are asked */
};

/* The beginning of the path that ends before `plus`; NULL: there is none. */
static char *find_path(char *text, char *plus)
{
	char *s = plus;

	while (s > text && (unsigned char)s[-1] > ' ' && s[-1] != '(' && s[-1] != '[' && s[-1] != '"' && plus - s < PATH_MOST)
		s--;
	return *s == '/' && s < plus ? s : NULL;
}

static struct mention *find_mentions(char *text, size_t size, uint32_t *n)
{
	struct mention *all = NULL;
	char *end = text + size;

	*n = 0;
	for (char *s = text; (s = memmem(s, (size_t)(end - s), "+0x", 3)) != NULL; s += 3) {
		char *path = find_path(text, s), *after;
		uint64_t offset = strtoull(s + 1, &after, 16);
		if (path == NULL || after <= s + 3)
			continue;
		if ((*n & (*n + 1)) == 0)
			all = need(realloc(all, (2 * (size_t)*n + 2) * sizeof *all));
		all[(*n)++] = (struct mention){ (size_t)(after - text), need(strndup(path, (size_t)(s - path))), offset, 0 };
	}
	return all;
}

static int by_place(const void *a, const void *b, void *all)
{
	const struct mention *x = &((const struct mention *)all)[*(const uint32_t *)a],
			     *y = &((const struct mention *)all)[*(const uint32_t *)b];
	int order = strcmp(x->path, y->path);

	return order != 0 ? order : x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* What is asked: each place once, those of one file together. */
static struct in_file *ask(struct mention *all, uint32_t n, uint32_t *count)
{
	uint32_t *order = need(malloc((n + (size_t)1) * sizeof *order));
	struct in_file *asked = need(malloc((n + (size_t)1) * sizeof *asked));

	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	qsort_r(order, n, sizeof *order, by_place, all);
	*count = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct mention *m = &all[order[i]];
		if (i == 0 || by_place(&order[i - 1], &order[i], all) != 0)
			asked[(*count)++] = (struct in_file){ m->path, m->offset };
		m->question = *count - 1;
	}
	free(order);
	return asked;
}

static void print_places(FILE *to, const struct traces *t, uint32_t question)
{
	uint32_t n;
	const struct place *p = traces_places(t, question, &n);

	for (uint32_t i = 0; i < n; i++) {
		fprintf(to, "%s%s", i == 0 ? " (" : ", inlined in ", p[i].function[0] != 0 ? p[i].function : "?");
		if (p[i].line != 0 && p[i].file[0] != 0)
			fprintf(to, " %s:%" PRIu32, p[i].file, p[i].line);
	}
	if (n > 0)
		fputc(')', to);
}

static void resolve_text(char *text, size_t size, FILE *to, const char *root)
{
	uint32_t n, count;
	struct mention *all = find_mentions(text, size, &n);
	struct in_file *asked = ask(all, n, &count);
	struct traces t;
	size_t at = 0;

	traces_of_files(&t, asked, count, root);
	if (t.why[0] != 0)
		fprintf(stderr, "heddle: warning: some names are missing: %s\n", t.why);
	for (uint32_t i = 0; i < n; i++) {
		fwrite(text + at, 1, all[i].end - at, to);
		at = all[i].end;
		print_places(to, &t, all[i].question);
	}
	fwrite(text + at, 1, size - at, to);
	traces_drop(&t);
	for (uint32_t i = 0; i < n; i++)
		free(all[i].path);
	free(asked);
	free(all);
}

int resolve(FILE *from, FILE *to, const char *root)
{
	char *text = need(malloc(TEXT_MAX + 1));
	size_t have = 0, n;

	while ((n = fread(text + have, 1, TEXT_MAX - have, from)) > 0 || have > 0) {
		have += n;
		char *last = have == TEXT_MAX ? memrchr(text, '\n', have) : NULL; /* a piece ends with a line */
		size_t size = last != NULL ? (size_t)(last + 1 - text) : have;
		if (have < TEXT_MAX && !feof(from) && !ferror(from))
			continue;
		text[have] = 0;
		resolve_text(text, size, to, root);
		memmove(text, text + size, have - size);
		have -= size;
	}
	free(text);
	if (ferror(from))
		die("stdin cannot be read");
	if (fflush(to) != 0)
		die("cannot write to stdout");
	return 0;
}
