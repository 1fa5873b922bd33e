/* arch/carry.c - what other runtimes keep for each kernel thread, though it is a process's.
 *
 * Owns:      the table of functions of these runtimes. They are weak symbols: a program that does not link with such a runtime has
 *            none of them. */
#include "arch/carry.h"

#include <stddef.h>

__attribute__((weak)) struct hd__exceptions *__cxa_get_globals(void);
__attribute__((weak)) void __cxa_end_catch(void);

bool hd__carries;

__attribute__((constructor)) static void find_runtimes(void)
{
	hd__carries = __cxa_get_globals != NULL && __cxa_end_catch != NULL;
}

void hd__carrier_init(struct hd__carrier *c)
{
	*c = (struct hd__carrier){ .aboard = &c->own };
}

void hd__carry(struct hd__carrier *c, struct hd__carried *next)
{
	struct hd__carried *before = c->aboard;

	if (before == next)
		return;
	struct hd__exceptions *here = __cxa_get_globals();
	before->exceptions = *here;
	*here = next->exceptions;
	c->aboard = next;
}

void hd__carried_drop(void)
{
	while (__cxa_get_globals()->caught != NULL) /* asked anew each time: a destructor may have waited, and moved */
		__cxa_end_catch();
}

void hd__carry_for_the_last_time(struct hd__carrier *c)
{
	c->aboard = &c->gone;
}
