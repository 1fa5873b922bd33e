/* outcomes.c [FILE] - the book's examples whose output is not fixed on several workers: what comes out of them.
 *
 * A run plays all of them, one after the other, and adds a line for each to the file, or to the standard output: the name of
 * the example, and what its processes did, in order. A small letter is a process that comes to the barrier (or reads, or
 * enters), the capital is the same process as it goes on. outcomes.py runs it under many schedules and compares the lines
 * with those that may be.
 *
 * It is for the simulator, where one process runs at a time: nothing guards the trace. What must never be aborts it, so that
 * the schedule that shows it is found, and can be repeated. */
#include <fcntl.h>
#include <heddle.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MUST(cond)                                                                                                             \
	do {                                                                                                                   \
		if (!(cond)) {                                                                                                 \
			fprintf(stderr, "%s: after \"%s\" this must hold: %s\n", example, line, #cond);                        \
			abort();                                                                                               \
		}                                                                                                              \
	} while (0)

enum { CROWD_MAX = 3 };

static int file = STDOUT_FILENO;
static const char *example;
static char line[64];
static int length;

/* A traced message. The instant before it is one at which the others may come first. */
static void say(char c)
{
	hd_checkpoint();
	line[length++] = c;
	line[length] = 0;
}

/* Who it is that an argument names. */
static int number(void *who)
{
	return (int)(intptr_t)who;
}

static char small(void *who)
{
	return (char)('a' + number(who));
}

static char capital(void *who)
{
	return (char)('A' + number(who));
}

static void begin(const char *name)
{
	example = name;
	length = 0;
	line[0] = 0;
}

/* Forks entry(0), entry(1), ..., and adds a line for what was said since the beginning. */
static void play(int crowd, hd_entry entry)
{
	hd_pid pids[CROWD_MAX];

	for (int i = 0; i < crowd; i++) {
		pids[i] = hd_spawn(entry, (void *)(intptr_t)i);
		MUST(pids[i] > 0);
	}
	for (int i = 0; i < crowd; i++)
		MUST(hd_join(pids[i], NULL, HD_FOREVER) == 0);
	dprintf(file, "%s %s\n", example, line);
}

/* ---- 4.6: prisoners ---- */

static int rounds;
static int here, over; /* how many have come to the barrier, in all rounds; how many are over it */

static void come(void *who)
{
	say(small(who));
	here++;
}

/* Nobody jumps in a round before all of the round are there. */
static void jump(void *who, int round, int crowd)
{
	say(capital(who));
	MUST(here >= (round + 1) * crowd);
	over++;
}

static void *escape_alone(void *who)
{
	say(small(who));
	say(capital(who));
	return NULL;
}

static struct hd_semaphore at_barrier[2];

static void *escape_by_semaphores(void *who)
{
	for (int round = 0; round < rounds; round++) {
		come(who);
		MUST(hd_semaphore_signal(&at_barrier[number(who)]) == 0);
		MUST(hd_semaphore_wait(&at_barrier[1 - number(who)], HD_FOREVER) == 0);
		jump(who, round, 2);
	}
	return NULL;
}

static struct hd_barrier two = HD_BARRIER(2), three = HD_BARRIER(3);

static void *escape_by_barrier(void *who)
{
	for (int round = 0; round < rounds; round++) {
		come(who);
		MUST(hd_barrier_wait(&two, HD_FOREVER) >= 0);
		jump(who, round, 2);
	}
	return NULL;
}

static int lasts;

static void *escape_of_three(void *who)
{
	come(who);
	int last = hd_barrier_wait(&three, HD_FOREVER);
	MUST(last == 0 || last == 1);
	jump(who, 0, 3);
	lasts += last;
	return NULL;
}

static void prisoners(const char *name, int crowd, int times, hd_entry entry)
{
	begin(name);
	rounds = times;
	here = over = 0;
	play(crowd, entry);
	MUST(here == crowd * rounds && over == here);
}

/* ---- 4.6: reading comes before displaying ---- */

static struct hd_semaphore reading_is_done;

static void *read_or_display(void *who)
{
	if (number(who) == 1) {
		say('r');
		MUST(hd_semaphore_signal(&reading_is_done) == 0);
	} else {
		MUST(hd_semaphore_wait(&reading_is_done, HD_FOREVER) == 0);
		say('d');
	}
	return NULL;
}

/* ---- 2.6 and 2.8: nobody enters before the other has left ---- */

static struct hd_semaphore semaphore = HD_SEMAPHORE(1);
static struct hd_mutex mutex;
static int inside;

static void section(void *who)
{
	MUST(inside++ == 0);
	say(small(who));
	say(capital(who));
	MUST(--inside == 0);
}

static void *enter_by_semaphore(void *who)
{
	MUST(hd_semaphore_critical(&semaphore, section, who, HD_FOREVER) == 0);
	return NULL;
}

static void nested(void *who)
{
	MUST(inside == 1 && line[length - 1] == small(who));
}

static void section_with_another_in_it(void *who)
{
	MUST(inside++ == 0);
	say(small(who));
	MUST(hd_mutex_critical(&mutex, nested, who, HD_FOREVER) == 0);
	say(capital(who));
	MUST(--inside == 0);
}

static void *enter_by_mutex(void *who)
{
	MUST(hd_mutex_critical(&mutex, section_with_another_in_it, who, HD_FOREVER) == 0);
	return NULL;
}

/* ---- 4.4: one computes, two ask ---- */

static hd_promise *promise;

static void *compute(void *arg)
{
	say('c');
	return arg;
}

static void *ask(void *who)
{
	void *value = NULL;

	say(small(who));
	MUST(hd_promise_value(promise, &value, HD_FOREVER) == 0);
	MUST(value == (void *)3);
	say(capital(who));
	return NULL;
}

/* ---- 4.5: one writes three, the first reader reads two of them, the second one ---- */

static hd_queue *queue;

static void read_some(void *who, int n)
{
	char item = 0, last = 0;

	for (int i = 0; i < n; i++, last = item) {
		MUST(hd_queue_next(queue, &item, HD_FOREVER) == 0);
		MUST(item > last);
		hd_checkpoint();
		line[length++] = small(who);
		line[length++] = item;
		line[length] = 0;
	}
}

static void *read_or_write(void *who)
{
	if (number(who) < 2)
		read_some(who, 2 - number(who));
	else
		for (char item = '1'; item <= '3'; item++)
			MUST(hd_queue_put(queue, &item, HD_FOREVER) == 0);
	return NULL;
}

static void *first(void *arg)
{
	begin("alone");
	play(2, escape_alone);
	prisoners("semaphores", 2, 1, escape_by_semaphores);
	prisoners("barrier", 2, 1, escape_by_barrier);
	prisoners("semaphores-twice", 2, 2, escape_by_semaphores);
	prisoners("barrier-twice", 2, 2, escape_by_barrier);
	prisoners("barrier-of-three", 3, 1, escape_of_three);
	MUST(lasts == 1);
	begin("reading");
	play(2, read_or_display);
	begin("critical-semaphore");
	play(3, enter_by_semaphore);
	begin("critical-mutex");
	play(3, enter_by_mutex);

	begin("promise");
	promise = hd_promise_spawn(compute, (void *)3);
	MUST(promise != NULL);
	play(2, ask);
	hd_promise_release(promise);

	begin("queue");
	queue = hd_queue_new(1, 0);
	MUST(queue != NULL);
	play(3, read_or_write);
	hd_queue_drop(queue);
	return arg;
}

int main(int argc, char **argv)
{
	int given = argc > 1 ? open(argv[1], O_WRONLY | O_APPEND | O_CLOEXEC) : -1;

	if (given >= 0) /* else it has gone meanwhile: somebody repeats a schedule */
		file = given;
	return hd_run(NULL, first, NULL) == 0 ? 0 : 1;
}
