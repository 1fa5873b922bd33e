/* main.c - the `heddle` command. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "explore.h"
#include "help.h"
#include "inspect.h"
#include "lua.h"
#include "recording.h"
#include "say.h"
#include "web.h"

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
	if (strcmp(argv[1], "ps") == 0)
		return ps_main(argc - 1, argv + 1);
	if (strcmp(argv[1], "waits") == 0)
		return waits_main(argc - 1, argv + 1);
	if (strcmp(argv[1], "bt") == 0)
		return bt_main(argc - 1, argv + 1);
	if (strcmp(argv[1], "web") == 0)
		return web_main(argc - 1, argv + 1);
	if (strcmp(argv[1], "stats") == 0)
		return stats_main(argc - 1, argv + 1);
	if (strcmp(argv[1], "top") == 0)
		return top_main(argc - 1, argv + 1);
	if (strcmp(argv[1], "trace") == 0)
		return trace_main(argc - 1, argv + 1);
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
