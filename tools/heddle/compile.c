/* compile.c - a C file, compiled against heddle. */
#define _GNU_SOURCE
#include "compile.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "home.h"
#include "lua.h"
#include "say.h"

#define WORDS_MAX 128

static uint64_t mix(uint64_t hash, const void *data, size_t size)
{
	const unsigned char *bytes = data;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	return hash;
}

/* A number that changes with the file, with heddle and with the way it is compiled. */
static uint64_t fingerprint(const char *file, const struct home *at, char **words)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	char *library, buffer[4096];
	struct stat s;
	size_t n;
	FILE *f = fopen(file, "re");

	if (f == NULL)
		die("%s: %s", file, strerror(errno));
	while ((n = fread(buffer, 1, sizeof buffer, f)) > 0)
		hash = mix(hash, buffer, n);
	fclose(f);
	for (; *words != NULL; words++)
		hash = mix(hash, *words, strlen(*words) + 1);
	if (asprintf(&library, "%s/libheddle.so", at->lib) < 0)
		die("no memory");
	if (stat(library, &s) == 0) {
		hash = mix(hash, &s.st_mtim, sizeof s.st_mtim);
		hash = mix(hash, &s.st_size, sizeof s.st_size);
	}
	free(library);
	return hash;
}

/* The folder for what was compiled, made if need be. */
static char *cache(void)
{
	const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char *folder;

	if ((base == NULL || base[0] != '/' ? asprintf(&folder, "%s/.cache/heddle", home != NULL ? home : "/tmp")
					    : asprintf(&folder, "%s/heddle", base)) < 0)
		die("no memory");
	for (char *slash = strchr(folder + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(folder, 0777);
		*slash = '/';
	}
	if (mkdir(folder, 0777) != 0 && errno != EEXIST)
		die("%s: %s", folder, strerror(errno));
	return folder;
}

/* Adds the words of a text; NULL has none. */
static void add_words(char **words, int *n, const char *text)
{
	char *copy = text != NULL ? strdup(text) : NULL, *rest = copy, *word;

	while (copy != NULL && (word = strsep(&rest, " \t\n")) != NULL)
		if (word[0] != 0 && *n < WORDS_MAX - 8)
			words[(*n)++] = word;
}

static char *text(const char *before, const char *after)
{
	char *both;

	if (asprintf(&both, "%s%s", before, after) < 0)
		die("no memory");
	return both;
}

/* The next name in what the compiler wrote for make: a backslash stands before a blank in a name, and before the end of a line. */
static bool next_name(FILE *f, char *name, size_t size)
{
	size_t n = 0;

	for (int c; (c = getc(f)) != EOF;) {
		bool escaped = c == '\\';
		if (escaped)
			c = getc(f);
		if ((c == ' ' && !escaped) || c == '\n') {
			if (n > 0)
				break;
		} else if (c != EOF && n + 1 < size) {
			name[n++] = (char)c;
		}
	}
	name[n] = 0;
	return n > 0;
}

/* Whether none of the files that the program was made of, which the compiler has listed, is younger. */
static bool is_fresh(const char *program, const char *listed)
{
	struct stat made, part;
	char name[PATH_MAX];
	FILE *f = fopen(listed, "re");
	bool fresh = f != NULL && stat(program, &made) == 0 && access(program, X_OK) == 0 &&
		     next_name(f, name, sizeof name); /* the program's own, and a colon */

	while (fresh && next_name(f, name, sizeof name))
		fresh = stat(name, &part) == 0 &&
			(part.st_mtim.tv_sec < made.st_mtim.tv_sec ||
			 (part.st_mtim.tv_sec == made.st_mtim.tv_sec && part.st_mtim.tv_nsec <= made.st_mtim.tv_nsec));
	if (f != NULL)
		fclose(f);
	return fresh;
}

static bool compile(char **words)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		execvp(words[0], words);
		fprintf(stderr, "heddle: %s: %s\n", words[0], strerror(errno));
		_exit(2);
	}
	while (child > 0 && waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

char *compile_file(const char *file, const char *compiler)
{
	const struct home *at = find_home();
	char *words[WORDS_MAX] = { NULL }, *program, *temporary, *listed;
	int n = 0;

	if (compiler == NULL)
		compiler = getenv("CC") != NULL ? getenv("CC") : "cc";
	add_words(words, &n, compiler);
	for (const char *const *flag = (const char *const[]){ "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", NULL };
	     *flag != NULL; flag++)
		words[n++] = (char *)*flag;
	add_words(words, &n, getenv("CFLAGS"));
	words[n++] = text("-I", at->include);
	words[n++] = (char *)file;
	words[n++] = text("-L", at->lib);
	words[n++] = text("-Wl,-rpath,", at->lib);
	words[n++] = (char *)"-lheddle";
	add_words(words, &n, getenv("LDLIBS"));
	const char *name = strrchr(file, '/') != NULL ? strrchr(file, '/') + 1 : file;
	if (asprintf(&program, "%s/%s-%016" PRIx64, cache(), name, fingerprint(file, at, words)) < 0 ||
	    asprintf(&temporary, "%s.%d", program, (int)getpid()) < 0 || asprintf(&listed, "%s.d", program) < 0)
		die("no memory");
	if (!is_fresh(program, listed)) {
		words[n++] = (char *)"-MD";
		words[n++] = (char *)"-MF";
		words[n++] = listed;
		words[n++] = (char *)"-o";
		words[n++] = temporary;
		words[n] = NULL;
		if (!compile(words) || rename(temporary, program) != 0) {
			unlink(temporary);
			die("%s does not compile", file);
		}
	}
	free(temporary);
	free(listed);
	return program;
}

char **compile_first(char **words)
{
	size_t n = 0, length = strlen(words[0]);
	bool lua = is_lua(words[0]);

	if (!lua && (length < 3 || strcmp(words[0] + length - 2, ".c") != 0))
		return words;
	while (words[n] != NULL)
		n++;
	char **made = calloc(n + 2, sizeof *made);
	if (made == NULL)
		die("no memory");
	memcpy(made + lua, words, n * sizeof *made);
	made[0] = lua ? (char *)find_lua() : compile_file(words[0], NULL);
	return made;
}
