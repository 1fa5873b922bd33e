/* behaviours.c FILE - six behaviours on three cowns; the order in which they ran becomes a line at the end of FILE. */
#include <heddle.h>
#include <stdio.h>
#include <stdlib.h>

static char order[8];
static int ran;

static void note(void *arg, void *const data[])
{
	(void)data;
	order[ran++] = (char)('0' + (intptr_t)arg);
}

static void make(intptr_t number, hd_cown *a, hd_cown *b)
{
	if (hd_when_n(note, (void *)number, (hd_cown *[]){ a, b }, b != NULL ? 2 : 1) != 0)
		abort();
}

static void *first(void *arg)
{
	hd_cown *r1 = hd_cown_new(NULL, NULL), *r2 = hd_cown_new(NULL, NULL), *r3 = hd_cown_new(NULL, NULL);

	if (r1 == NULL || r2 == NULL || r3 == NULL)
		abort();
	make(0, r1, NULL);
	make(1, r3, NULL);
	make(2, r1, r2);
	make(3, r1, NULL);
	make(4, r2, r3);
	make(5, r3, NULL);
	hd_cown_release(r1);
	hd_cown_release(r2);
	hd_cown_release(r3);
	if (hd_quiesce(HD_FOREVER) != 0)
		abort();
	return arg;
}

int main(int argc, char **argv)
{
	if (argc < 2 || hd_run(NULL, first, NULL) != 0)
		return 1;
	FILE *f = fopen(argv[1], "a");
	if (f == NULL || fprintf(f, "%s\n", order) < 0 || fclose(f) != 0)
		return 1;
	return 0;
}
