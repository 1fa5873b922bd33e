/* group.c - three downloads that begin and end together: one fails, the others stop. */
#include <errno.h>
#include <heddle.h>
#include <stdio.h>
#include <string.h>

struct file {
	const char *name;
	hd_time takes;
	int err; /* what then happens */
	const char *outcome;
};

static void *download(void *arg)
{
	struct file *f = arg;

	f->outcome = "stopped";
	if (hd_sleep(f->takes) == -ECANCELED)
		return NULL;
	f->outcome = f->err != 0 ? "failed" : "done";
	if (f->err != 0)
		hd_fail(f->err); /* cancels the rest; does not return */
	return NULL;
}

static void *first(void *arg)
{
	static struct file files[] = {
		{ "index", 0, 0, "not begun" },
		{ "image", HD_SEC(3600), 0, "not begun" },
		{ "movie", HD_MS(10), ECONNRESET, "not begun" },
	};
	struct hd_group all = { 0 };

	for (int i = 0; i < 3; i++)
		if (hd_group_spawn(&all, download, &files[i]) < 0)
			hd_group_cancel(&all); /* all of them, or none */
	int err = hd_group_wait(&all, HD_FOREVER);
	for (int i = 0; i < 3; i++)
		printf("%s: %s\n", files[i].name, files[i].outcome);
	printf("all have ended: %s\n", strerror(-err));
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
