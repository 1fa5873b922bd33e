/* inspect.h - `heddle ps`, `heddle waits` and `heddle bt`: what they share. */
#ifndef INSPECT_H
#define INSPECT_H

#include "census.h"

int ps_main(int argc, char **argv);
int waits_main(int argc, char **argv);
int bt_main(int argc, char **argv);
int stats_main(int argc, char **argv);
int top_main(int argc, char **argv);

/* What they print of one runtime. Whether a deadlock was found. */
void ps_print(const struct census *c, bool json);
bool waits_print(const struct census *c, bool dot);

#define COPIES_MAX 16
struct inspected {
	struct memory memory;
	struct copy copies[COPIES_MAX];
	size_t count;
	struct census censuses[COPIES_MAX]; /* of the copies in which a runtime runs */
	size_t running;
};

/* Opens the program that a word means, finds heddle in it, and takes the census of each runtime that runs. Dies when there is none, or it cannot be
 * read. `quiet`: does not say so if there are several copies of heddle, or the end of a core file is missing. */
void inspect(struct inspected *i, const char *word, bool quiet);
void inspect_end(struct inspected *i);

/* Whether a runtime runs in this copy, and can be read. */
bool copy_runs(const struct copy *copy);

/* The line over a table: which program, how many processes, which version of heddle. */
void print_headline(const struct census *c);

#endif
