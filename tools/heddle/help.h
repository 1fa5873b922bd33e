/* help.h - what `heddle help` teaches. */
#ifndef HELP_H
#define HELP_H

/* About a command; NULL: about all. Returns false when there is no such command. */
int help(const char *command);

#endif
