/* explain.c - what the command says where the system forbids to look, by Yama's setting. */
#include <stdio.h>

#include "heddle/memory.h"

int main(void)
{
	char why[512];

	for (int scope = -1; scope <= 3; scope++) {
		live_explain(why, sizeof why, "process 7 (server)", scope, true);
		printf("%d: %s\n", scope, why);
	}
	live_explain(why, sizeof why, "process 7 (server)", 1, false);
	printf("other: %s\n", why);
	return 0;
}
