/* symbols.c - what is at an address of a program: the kernel knows the module, addr2line the line in it. */
#define _GNU_SOURCE
#include "symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MODULES_MAX 32
#define ASKED_MAX 512 /* addresses in one question */

struct module {
	char path[512];
	uintptr_t start, end; /* of its first mapping, and of its last */
	uintptr_t base;	      /* what its debugging information counts from */
};

/* Whether the addresses in a module are absolute: it is a program that is not position-independent. */
static bool is_fixed(const char *path)
{
	Elf64_Ehdr header;
	FILE *f = fopen(path, "re");
	bool fixed = f != NULL && fread(&header, sizeof header, 1, f) == 1 && header.e_type == ET_EXEC;

	if (f != NULL)
		fclose(f);
	return fixed;
}

static unsigned read_modules(pid_t pid, struct module *modules)
{
	char name[64], line[1024];
	unsigned n = 0;

	snprintf(name, sizeof name, "/proc/%d/maps", (int)pid);
	FILE *maps = fopen(name, "re");
	while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
		uintptr_t from, to, offset;
		char path[512] = "";
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %" SCNxPTR " %*s %*s %511[^\n]", &from, &to, &offset, path) <
			    3 ||
		    path[0] != '/')
			continue;
		if (n == 0 || strcmp(modules[n - 1].path, path) != 0) {
			if (n == MODULES_MAX)
				break;
			snprintf(modules[n].path, sizeof modules[n].path, "%s", path);
			modules[n].start = from;
			modules[n++].base = is_fixed(path) ? 0 : from - offset;
		}
		modules[n - 1].end = to;
	}
	if (maps != NULL)
		fclose(maps);
	return n;
}

/* Starts addr2line on so many addresses of a module; answers a stream of two lines for each, NULL when there is none. */
static FILE *ask(const char *module, char *const *addresses, unsigned n, pid_t *child)
{
	char **argv = calloc(n + 5, sizeof *argv);
	int pipe_ends[2];

	if (argv == NULL || pipe2(pipe_ends, O_CLOEXEC) != 0) {
		free(argv);
		return NULL;
	}
	memcpy(argv, (char *[]){ (char *)"addr2line", (char *)"-asfie", (char *)module }, 3 * sizeof *argv);
	memcpy(argv + 3, addresses, n * sizeof *argv);
	*child = fork();
	if (*child == 0) {
		dup2(pipe_ends[1], STDOUT_FILENO);
		int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
		dup2(nothing, STDERR_FILENO);
		execvp(argv[0], argv);
		_exit(127);
	}
	close(pipe_ends[1]);
	free(argv);
	if (*child < 0) {
		close(pipe_ends[0]);
		return NULL;
	}
	return fdopen(pipe_ends[0], "r");
}

static void chop(char *line)
{
	line[strcspn(line, "\n")] = 0;
}

/* Those of one module. */
static void look_up_in(const struct module *m, const uintptr_t *addresses, unsigned n, struct symbol *symbols)
{
	char *texts[ASKED_MAX], line[512];
	unsigned which[ASKED_MAX], asked = 0;
	pid_t child;

	for (unsigned i = 0; i < n && asked < ASKED_MAX; i++) {
		if (addresses[i] < m->start || addresses[i] >= m->end || symbols[i].places != 0)
			continue;
		const char *file = strrchr(m->path, '/') + 1;
		symbols[i].in_heddle = strncmp(file, "libheddle.so", 12) == 0;
		symbols[i].places = 1;
		/* a return address is behind its call */
		snprintf(symbols[i].place[0], sizeof symbols[i].place[0], "%.70s+0x%" PRIxPTR, file, addresses[i] - m->base);
		if (asprintf(&texts[asked], "0x%" PRIxPTR, addresses[i] - m->base - 1) < 0)
			break;
		which[asked++] = i;
	}
	FILE *answers = asked > 0 ? ask(m->path, texts, asked, &child) : NULL;
	/* For each its address, then functions and places, inlined ones first: the last function is the one that was called, the
	 * first place is where it stood. */
	struct symbol *s = NULL;
	unsigned places = 0;
	for (unsigned i = 0; answers != NULL && fgets(line, sizeof line, answers) != NULL;) {
		chop(line);
		if (strncmp(line, "0x", 2) == 0) {
			s = i < asked ? &symbols[which[i++]] : NULL;
			places = 0;
			continue;
		}
		if (s != NULL && line[0] != '?')
			snprintf(s->function, sizeof s->function, "%.95s", line);
		if (fgets(line, sizeof line, answers) == NULL)
			break;
		chop(line);
		line[strcspn(line, " ")] = 0; /* "(discriminator 2)" */
		if (s != NULL && places < PLACES_MAX && line[0] != '?') {
			snprintf(s->place[places], sizeof s->place[places], "%.95s", line);
			s->places = ++places;
		}
	}
	if (answers != NULL) {
		fclose(answers);
		waitpid(child, NULL, 0);
	}
	for (unsigned i = 0; i < asked; i++)
		free(texts[i]);
}

void look_up(pid_t pid, const uintptr_t *addresses, unsigned n, struct symbol *symbols)
{
	static struct module modules[MODULES_MAX];
	unsigned count = read_modules(pid, modules);

	memset(symbols, 0, n * sizeof *symbols);
	for (unsigned i = 0; i < count; i++)
		look_up_in(&modules[i], addresses, n, symbols);
}
