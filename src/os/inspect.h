/* os/inspect.h - whether other programs may read the memory of this one. */
#ifndef OS_INSPECT_H
#define OS_INSPECT_H

/* Where the system lets only the parent of a program read its memory (Yama's ptrace_scope is 1), any program of the same user may read this one's, from now on. */
void hd__os_allow_inspection(void);

#endif
