/* main.c - heddle-lua, which `heddle lua` runs: a Lua program whose processes are heddle's. */
#include <errno.h>
#include <getopt.h>
#include <lua.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process.h"
#include "spawn.h"

#define MEMORY (UINT64_C(256) << 20)
#define BUDGET 10000

_Noreturn static void die(const char *option, const char *text, const char *what)
{
	fprintf(stderr, "heddle: --%s %s: not %s\n", option, text, what);
	exit(2);
}

static uint64_t number(const char *option, const char *text, uint64_t least, uint64_t most, const char *what)
{
	char *end;

	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
	if (shift != 0 && strcmp(option, "memory") == 0)
		end++;
	else
		shift = 0;
	if (errno != 0 || end == text || *end != 0 || text[0] == '-' || value > most >> shift || value << shift < least)
		die(option, text, what);
	return value << shift;
}

/* Where the modules of the program are: beside its file. */
static char *path_of(const char *file)
{
	const char *slash = strrchr(file, '/');
	int length = slash != NULL ? (int)(slash - file) : 1;
	const char *directory = slash != NULL ? file : ".";
	size_t size = 2 * (size_t)length + sizeof "/?.lua;/?/init.lua";
	char *path = malloc(size);

	if (path != NULL)
		snprintf(path, size, "%.*s/?.lua;%.*s/?/init.lua", length, directory, length, directory);
	return path;
}

static void *run_first(void *arg)
{
	struct how how = default_how();
	struct process *p = process_new(NULL, NULL, how.memory);
	hd_pid pid = -ENOMEM;

	if (p != NULL) {
		p->first = true;
		how.spawn.name = "main";
		pid = hd_spawn_with(&how.spawn, NULL, p);
		if (pid < 0)
			process_drop(p);
	}
	if (pid < 0) {
		fprintf(stderr, "heddle: the program cannot start: %s\n", hd_error((int)pid));
		hd_shutdown(2);
	}
	return arg;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "workers", required_argument, NULL, 'w' },
		{ "memory", required_argument, NULL, 'm' },
		{ "budget", required_argument, NULL, 'b' },
		{ NULL, 0, NULL, 0 },
	};
	struct hd_config config = { .workers = 0 };
	int c;

	be_repeatable(argv);
	program.memory = MEMORY;
	program.budget = BUDGET;
	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (c) {
		case 'w':
			number("workers", optarg, 1, 1024, "a number from 1 to 1024");
			setenv("HEDDLE_WORKERS", optarg, 1); /* which counts more than the configuration */
			break;
		case 'm':
			program.memory =
				number("memory", optarg, 0, INT64_MAX, "a number of bytes, with K, M or G behind it perhaps");
			break;
		case 'b':
			program.budget = number("budget", optarg, 1, INT32_MAX, "a number of instructions");
			break;
		default:
			return 2;
		}
	}
	program.file = argv[optind];
	if (program.file == NULL) {
		fprintf(stderr, "heddle: which file? `heddle help lua` explains\n");
		return 2;
	}
	if (access(program.file, R_OK) != 0) {
		fprintf(stderr, "heddle: %s: %s\n", program.file, strerror(errno));
		return 2;
	}
	program.arguments = argv + optind + 1;
	char *path = path_of(program.file);
	if (path == NULL) {
		fprintf(stderr, "heddle: no memory\n");
		return 2;
	}
	program.path = path;
	process_ops.budget = program.budget;
	int status = hd_run(&config, run_first, NULL);
	free(path);
	if (status == 0)
		return process_main_status();
	return status > 0 ? status : status == -EDEADLK ? 1 : 2;
}
