/* run.c - `heddle run`: compiles a C file against heddle, and runs it. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compile.h"
#include "explore.h"
#include "help.h"
#include "lua.h"
#include "say.h"

int run_main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "cc", required_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	const char *compiler = NULL;
	int c;

	while ((c = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
		if (c == 'h') {
			help("run");
			return 0;
		}
		if (c == '?')
			return 2;
		compiler = optarg;
	}
	if (argv[optind] == NULL)
		die("which file? `heddle help run` explains");
	if (is_lua(argv[optind]))
		die("%s is no C file: heddle lua %s", argv[optind], argv[optind]);
	argv[optind] = compile_file(argv[optind], compiler);
	signal(SIGPIPE, SIG_DFL);
	execv(argv[optind], argv + optind);
	die("%s: %s", argv[optind], strerror(errno));
}
