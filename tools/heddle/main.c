/* main.c - the `heddle` command. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "explore.h"
#include "help.h"
#include "lua.h"
#include "say.h"

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN); /* a program that has gone is noticed, and said so */
	if (argc < 2) {
		help(NULL);
		return 2;
	}
	if (strcmp(argv[1], "explore") == 0)
		return explore_main(argc - 1, argv + 1);
	if (strcmp(argv[1], "replay") == 0)
		return replay_main(argc - 1, argv + 1);
	if (strcmp(argv[1], "run") == 0)
		return run_main(argc - 1, argv + 1);
	if (strcmp(argv[1], "lua") == 0)
		return lua_main(argc - 1, argv + 1);
	if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		if (help(argv[2]))
			return 0;
		die("there is no command %s; `heddle help` lists them", argv[2]);
	}
	if (strcmp(argv[1], "--version") == 0) {
		puts("heddle " HEDDLE_VERSION);
		return 0;
	}
	die("there is no command %s; `heddle help` lists them", argv[1]);
}
