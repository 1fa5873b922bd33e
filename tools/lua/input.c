/* input.c - heddle.read_line: lines of the standard input, for which only the process waits that asks.
 *
 * Owns:       one reader for the program.
 * Locking:    one mutex; a process that is killed while it has it gives it up. */
#include <errno.h>
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process.h"

#define LINE_MAX_SIZE (1 << 20)

static struct hd_mutex lock;
static struct hd_reader reader;
static char buffer[LINE_MAX_SIZE];

static void unlock(void *mutex)
{
	hd_mutex_unlock(mutex);
}

/* Returns how many bytes the line in p->line had, with its newline; 0: the end of the input; or -errno. */
int read_line_wait(struct process *p)
{
	struct hd_cleanup cleanup;
	char *line;

	free(p->line);
	p->line = NULL;
	int err = hd_mutex_lock(&lock, p->until);
	if (err != 0)
		return err;
	hd_cleanup_push(&cleanup, unlock, &lock);
	if (reader.buffer == NULL)
		hd_reader_init(&reader, STDIN_FILENO, buffer, sizeof buffer);
	ssize_t n = hd_reader_until(&reader, '\n', &line, p->until);
	if (n > 0) {
		p->line = malloc((size_t)n);
		if (p->line == NULL)
			n = -ENOMEM;
		else
			memcpy(p->line, line, (size_t)n);
	}
	hd_cleanup_pop(&cleanup, true);
	return (int)n;
}

static int read_line_k(lua_State *L, int status, lua_KContext context)
{
	struct process *p = process_of(L);

	(void)status;
	(void)context;
	process_waited(L, "heddle.read_line");
	if (p->answer > 0) {
		size_t n = (size_t)p->answer;
		lua_pushlstring(L, p->line, n - (p->line[n - 1] == '\n'));
		free(p->line);
		p->line = NULL;
		return 1;
	}
	lua_pushnil(L);
	if (p->answer == 0)
		return 1;
	lua_pushstring(L, p->answer == -ETIMEDOUT  ? "timeout"
			  : p->answer == -EMSGSIZE ? "a line is longer than 1 MiB"
						   : hd_error(p->answer));
	return 2;
}

int read_line(lua_State *L)
{
	process_of(L)->until = check_until(L, 1);
	return process_wait(L, WISH_LINE, "heddle.read_line", read_line_k, 0);
}
