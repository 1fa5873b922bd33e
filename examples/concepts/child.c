/* child.c - sort(1) as a child: what is written to it comes back in order. */
#define _POSIX_C_SOURCE 200809L
#include <heddle.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static int ends[3]; /* of the pipes to the child's standard input, and from its output */

static void *write_words(void *arg)
{
	static const char words[] = "weft\nheddle\nloom\nshuttle\n";

	if (hd_write_all(ends[0], words, strlen(words), HD_FOREVER) != 0)
		hd_shutdown(1);
	hd_close(ends[0]); /* the child comes to the end of its input */
	return arg;
}

static void *first(void *arg)
{
	const char *const argv[] = { "sort", NULL }, *const env[] = { "LC_ALL=C", "PATH=/usr/bin:/bin", NULL };
	const struct hd_child sort = { .argv = argv, .env = env, .in = HD_CHILD_PIPE, .out = HD_CHILD_PIPE };
	char text[100];
	int status = -1;
	pid_t child = hd_spawn_child(&sort, ends);

	if (child < 0) {
		fprintf(stderr, "child: %s\n", hd_error(child));
		hd_shutdown(1);
		return arg;
	}
	hd_pid writer = hd_spawn(write_words, NULL);
	ssize_t n = hd_read_full(ends[1], text, sizeof text, HD_FOREVER); /* all there is up to the end */
	if (writer < 0 || n < 0 || hd_waitpid(child, &status, 0, HD_FOREVER) != child ||
	    hd_join(writer, NULL, HD_FOREVER) != 0) {
		hd_shutdown(1);
		return arg;
	}
	hd_close(ends[1]);
	printf("%.*sstatus %d\n", (int)n, text, WEXITSTATUS(status));

	status = hd_system("exit 3", HD_FOREVER);
	printf("a command of the shell: status %d\n", WEXITSTATUS(status));
	status = hd_system("exec sleep 1000", hd_after(HD_MS(10)));
	printf("another one: %s\n", hd_error(status));
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
