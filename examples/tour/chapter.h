/* chapter.h - a chapter of the tour: a small program of its own, whose source is shown before it runs. */
#ifndef CHAPTER_H
#define CHAPTER_H

#include <heddle.h>
#include <stdbool.h>
#include <stdio.h>

/* Each answers 0, or another number when it did not go as it should. */
int chapter_yield(void);
int chapter_priority(void);
int chapter_semaphore(void);
int chapter_many(void);
int chapter_echo(void);
int chapter_supervisor(void);
int chapter_bank(void);
int chapter_deadlock(void);
int chapter_numbers(void);

/* The lines between a chapter's marks, made by tools/snippet. */
extern const char yield_source[], priority_source[], semaphore_source[], many_source[], echo_source[], supervisor_source[],
	bank_source[], deadlock_source[], numbers_source[];

/* Shows how far something is: a bar on a terminal, nothing elsewhere. */
void progress(const char *what, long done, long total);

/* 1000000 as 1,000,000; good until the fourth call after it. */
const char *thousands(long n);

/* What the program has of the machine's memory now, in bytes: pages and page tables. */
long memory_used(void);

/* How many processes to block at once: a million, or what the free memory has room for; in a small tour 200. */
long how_many(void);

/* How many connections to have at once: a thousand, or what there are descriptors for; in a small tour fewer. */
long how_many_clients(void);

/* How often to repeat what is measured: n, or in a small tour less. */
long repetitions(long n);

#endif
