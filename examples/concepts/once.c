/* once.c - whoever comes first loads the table; who comes meanwhile waits for it. */
#include <heddle.h>
#include <stdio.h>

static struct hd_once loaded;
static int table[10];

static void load(void *name)
{
	printf("%s loads the table\n", (const char *)name);
	for (int i = 0; i < 10; i++) {
		table[i] = i * i;
		hd_yield(); /* slow: the others come */
	}
}

static void *user(void *name)
{
	int err = hd_once(&loaded, load, name, HD_FOREVER);

	if (err == 0)
		printf("%s finds %d\n", (const char *)name, table[9]);
	return NULL;
}

static void *first(void *arg)
{
	hd_detach(hd_spawn(user, (void *)"ann"));
	hd_detach(hd_spawn(user, (void *)"bob"));
	hd_detach(hd_spawn(user, (void *)"cleo"));
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
