/* harness/main.c - the test program: see runner.c. */
#include "harness/harness.h"

int main(int argc, char **argv)
{
	return harness_run(argc, argv);
}
