/* harness/real.c - the world of tests in an ordinary build: real threads, real time. */
#include "harness/harness.h"

void harness_world_begin(int round)
{
	(void)round;
}

void harness_world_end(void)
{
}

const char *harness_world(int round)
{
	(void)round;
	return "";
}

bool hd_is_simulated(void)
{
	return false;
}
