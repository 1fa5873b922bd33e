/* races/main.c - one race, to be explored: races PRIMITIVE EVENT EVENT. Without arguments, lists what there is. */
#include <heddle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "races/races.h"

static size_t primitive;
static enum event events[2];

/* A number that the schedule chooses: that of the thrower that comes last. */
static int dice;
static void *throw_dice(void *arg)
{
	dice = (int)(intptr_t)arg;
	return NULL;
}

static void *run(void *arg)
{
	static const int delays[] = { 2, 4, 8, 30 };
	hd_pid throwers[4];

	for (int i = 0; i < 4; i++)
		throwers[i] = hd_spawn(throw_dice, (void *)(intptr_t)i);
	for (int i = 0; i < 4; i++)
		if (hd_join(throwers[i], NULL, HD_FOREVER) != 0)
			abort();
	enum event first = race(primitive, events[0], events[1], delays[dice]);

	if (getenv("HEDDLE_SIM") != NULL && strncmp(getenv("HEDDLE_SIM"), "serve", 5) != 0)
		puts(first < EVENTS ? event_names[first] : "neither");
	return arg;
}

static void list(void)
{
	for (size_t p = 0; p < primitive_count; p++)
		for (enum event a = GRANT; a < EVENTS; a++)
			for (enum event b = a + 1; b < EVENTS; b++)
				if (can_happen(p, a) && can_happen(p, b))
					printf("%s\t%s\t%s\n", primitive_name(p), event_names[a], event_names[b]);
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		list();
		return argc == 1 ? 0 : 2;
	}
	while (primitive < primitive_count && strcmp(primitive_name(primitive), argv[1]) != 0)
		primitive++;
	for (int i = 0; i < 2; i++)
		while (events[i] < EVENTS && strcmp(event_names[events[i]], argv[2 + i]) != 0)
			events[i]++;
	if (primitive == primitive_count || events[0] == EVENTS || events[1] == EVENTS) {
		fprintf(stderr, "races: no such race; races without arguments lists them\n");
		return 2;
	}
	int code = hd_run(NULL, run, NULL);
	return code == 0 ? 0 : 1;
}
