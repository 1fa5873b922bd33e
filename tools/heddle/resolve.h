/* resolve.h - names for places that heddle has printed as file+offset: of a program that has crashed, say. */
#ifndef RESOLVE_H
#define RESOLVE_H

#include <stdio.h>

/* Copies a text, and puts behind each place in it what is there. `root`: where the files are, in place of "/"; or NULL. Returns the command's exit code. */
int resolve(FILE *from, FILE *to, const char *root);

#endif
