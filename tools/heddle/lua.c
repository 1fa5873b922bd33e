/* lua.c - `heddle lua`: runs heddle-lua, which is there if heddle was built with Lua. */
#include "lua.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "help.h"
#include "home.h"
#include "say.h"

bool is_lua(const char *file)
{
	size_t length = strlen(file);

	return length > 4 && strcmp(file + length - 4, ".lua") == 0;
}

const char *find_lua(void)
{
	const char *program = find_home()->lua;

	if (access(program, X_OK) != 0)
		die("this heddle was built without Lua: install Lua 5.4 with its headers (Debian: liblua5.4-dev), and build "
		    "heddle again");
	return program;
}

int lua_main(int argc, char **argv)
{
	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		help("lua");
		return 0;
	}
	argv[0] = (char *)find_lua();
	signal(SIGPIPE, SIG_DFL);
	execv(argv[0], argv);
	die("%s: %s", argv[0], strerror(errno));
}
