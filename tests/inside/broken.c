/* broken.c - a libdw that is as bad as a corrupt file could make it: loaded before the command. BROKEN says how. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *dwfl_module_addrname(void *module, unsigned long address);

const char *dwfl_module_addrname(void *module, unsigned long address)
{
	const char *how = getenv("BROKEN");

	(void)module;
	if (how != NULL && strcmp(how, "crash") == 0)
		*(volatile char *)(address | 1) = 0;
	if (how != NULL && strcmp(how, "loop") == 0)
		for (volatile unsigned long n = 0;; n++)
			;
	for (int fd = 3; fd < 64; fd++) /* garbled: what it tells is no record */
		if (write(fd, "garbage that is no record at all", 32) < 0)
			continue;
	_exit(0);
}
