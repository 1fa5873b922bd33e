/* harness/main.c - the test program: see runner.c. */
#include <signal.h>

#include "harness/harness.h"

/* A shell that starts it in the background has it ignore some signals; the tests take the usual actions for granted. */
int main(int argc, char **argv)
{
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	return harness_run(argc, argv);
}
