/* base/inbox.c - the inbox: order, and four threads at once. */
#include "base/inbox.h"

#include <pthread.h>
#include <sched.h>

#include "harness/harness.h"

enum { THREADS = 4, NOTES = 50000, OWN = 64 };

static struct hd__inbox inbox;

HD_TEST(inbox_gives_notes_in_the_order_they_came)
{
	static struct hd_note notes[5];

	for (int i = 0; i < 5; i++)
		hd__inbox_push(&inbox, &notes[i]);
	struct hd_note *note = hd__inbox_take_owner(&inbox);
	for (int i = 0; i < 5; i++, note = note->next)
		CHECK(note == &notes[i]);
	CHECK(note == NULL);
	CHECK(hd__inbox_take_owner(&inbox) == NULL);
}

HD_TEST(inbox_is_empty_until_a_note_comes_and_when_all_are_taken)
{
	static struct hd_note a, b;

	CHECK(hd__inbox_is_empty(&inbox));
	hd__inbox_push(&inbox, &a);
	CHECK(!hd__inbox_is_empty(&inbox));
	hd__inbox_push(&inbox, &b);
	CHECK(hd__inbox_take_owner(&inbox) == &a);
	CHECK(hd__inbox_is_empty(&inbox));
	hd__inbox_push(&inbox, &a); /* a note that was taken may be pushed again */
	CHECK(hd__inbox_take_owner(&inbox) == &a);
	CHECK(a.next == NULL);
}

/* What a thread says, again and again in a few notes, as a process does: a note is pushed anew once it has been applied. */
static struct said {
	struct hd_note note; /* first, so that the note is it */
	unsigned thread, number;
	bool free;
} said[THREADS][OWN];

static void *talk(void *arg)
{
	struct said *mine = arg;

	for (unsigned i = 0; i < (unsigned)hd_scaled(NOTES); i++) {
		struct said *s = &mine[i % OWN];
		while (!ld_acq(&s->free)) /* pairs with the taker's release */
			sched_yield();
		s->free = false;
		s->number = i; /* published by the push */
		hd__inbox_push(&inbox, &s->note);
	}
	return NULL;
}

/* Each thread's notes come once each and in its order. */
HD_TEST(inbox_keeps_every_threads_order_and_loses_nothing)
{
	pthread_t threads[THREADS];
	unsigned heard[THREADS] = { 0 }, total = 0;

	for (unsigned t = 0; t < THREADS; t++) {
		for (unsigned i = 0; i < OWN; i++)
			said[t][i] = (struct said){ .thread = t, .free = true };
		CHECK_EQ(pthread_create(&threads[t], NULL, talk, said[t]), 0);
	}
	while (total < THREADS * (unsigned)hd_scaled(NOTES)) {
		struct hd_note *note = hd__inbox_take_owner(&inbox);
		if (note == NULL)
			sched_yield();
		while (note != NULL) {
			struct said *s = (struct said *)note;
			note = note->next; /* s is its thread's again, below */
			CHECK_EQ(s->number, heard[s->thread]);
			heard[s->thread]++;
			total++;
			st_rel(&s->free, true); /* pairs with talk's acquire */
		}
	}
	for (unsigned t = 0; t < THREADS; t++)
		CHECK_EQ(pthread_join(threads[t], NULL), 0);
	CHECK(hd__inbox_is_empty(&inbox));
}
