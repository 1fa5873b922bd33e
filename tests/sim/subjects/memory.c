/* memory.c [SITE] - asks heddle for memory in twelve places, and takes no for an answer; but not at that site.
 *
 * A stack of another size, or a first local, is memory that heddle does not have yet. What was refused is printed. */
#include <errno.h>
#include <heddle.h>
#include <stdio.h>
#include <stdlib.h>

enum { SPAWNS = 4 };

static int careless;
static struct hd_local local;

/* Sites have numbers from 1 on. */
static bool is_given(int site, int err)
{
	if (err != 0)
		printf("%d refused\n", site);
	if (err != 0 && (err != -ENOMEM || site == careless))
		abort();
	return err == 0;
}

static void *set_local(void *arg)
{
	if (is_given((int)(intptr_t)arg, hd_local_set(&local, &local)) && hd_local_get(&local) != &local)
		abort();
	return NULL;
}

static void *first(void *arg)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	for (int site = 1; site < 3 * SPAWNS; site += 3) {
		const struct hd_spawn how = { .stack_size = (size_t)(64 << 10) << site / 3 };
		struct hd_end end;
		hd_pid pid = hd_spawn_with(&how, set_local, (void *)(intptr_t)(site + 1));
		if (!is_given(site, pid < 0 ? (int)pid : 0))
			continue;
		if (hd_join_end(pid, &end, HD_FOREVER) != 0)
			abort();
		is_given(site + 2, end.kind == HD_END_RETURNED ? 0 : end.err);
	}
	return arg;
}

int main(int argc, char **argv)
{
	careless = argc > 1 ? atoi(argv[1]) : 0;
	int code = hd_run(NULL, first, NULL);
	if (code == -ENOMEM)
		printf("0 refused\n");
	return code == 0 || code == -ENOMEM ? 0 : 1;
}
