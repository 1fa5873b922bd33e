/* io.c - a pipe between two processes: the reader waits for the writer, and other processes run meanwhile. */
#include <heddle.h>
#include <stdio.h>
#include <string.h>

static int ends[2]; /* of the pipe: for reading, for writing */

static void *writer(void *arg)
{
	static const char *const lines[] = { "one\n", "two\n", "three\n" };

	for (int i = 0; i < 3; i++) {
		if (hd_sleep(HD_MS(1)) != 0 || hd_write_all(ends[1], lines[i], strlen(lines[i]), HD_FOREVER) != 0)
			return NULL;
	}
	hd_close(ends[1]); /* the reader comes to the end */
	return arg;
}

static void *first(void *arg)
{
	char text[64];
	ssize_t n;

	if (hd_pipe(ends) != 0)
		hd_shutdown(1);
	n = hd_read(ends[0], text, sizeof text, hd_after(HD_US(10)));
	printf("at first: %s\n", n < 0 ? hd_error((int)n) : "something");
	hd_pid pid = hd_spawn(writer, arg);
	if (pid < 0)
		hd_shutdown(1);
	n = hd_read_full(ends[0], text, sizeof text, HD_FOREVER); /* all there is up to the end */
	printf("%zd bytes:\n%.*s", n, (int)n, text);
	hd_close(ends[0]);
	if (hd_join(pid, NULL, HD_FOREVER) != 0)
		hd_shutdown(1);
	return NULL;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
