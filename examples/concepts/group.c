/* group.c - three downloads that begin and end together: one fails, the others stop. */
#include <errno.h>
#include <heddle.h>
#include <stdio.h>
#include <string.h>

struct file {
	const char *name;
	int ms, err; /* how long it takes, and what then happens */
};

static void *download(void *arg)
{
	const struct file *f = arg;

	if (hd_sleep(HD_MS(f->ms)) == -ECANCELED) {
		printf("%s: stopped\n", f->name);
		return NULL;
	}
	printf("%s: %s\n", f->name, f->err ? "failed" : "done");
	if (f->err)
		hd_fail(f->err); /* cancels the rest */
	return NULL;
}

static void *first(void *arg)
{
	static struct file files[] = { { "index", 10, 0 }, { "image", 3600000, 0 }, { "movie", 30, ECONNRESET } };
	struct hd_group all = { 0 };

	for (int i = 0; i < 3; i++)
		if (hd_group_spawn(&all, download, &files[i]) < 0)
			hd_group_cancel(&all); /* all of them, or none */
	int err = hd_group_wait(&all, HD_FOREVER);
	printf("all have ended: %s\n", strerror(-err));
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
