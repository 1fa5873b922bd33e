/* search_insert_delete.c - three kinds of processes work on one list.
 *
 * Searchers only look at the list, any number at a time. An inserter adds a node at its end: it may do so while others
 * search, but not while another inserts. A deleter takes a node out and must be alone: nobody else may search, insert or
 * delete meanwhile. So searchers form a group, inserters form another with a lock of their own inside, and a deleter takes
 * the places of both groups. */
#include <stdatomic.h>
#include "crowd.h"
#include "group.h"

enum { SEARCHERS = 6, INSERTERS = 5, DELETERS = 3, TIMES = 2 };
enum { BEGINNING = DELETERS * TIMES, NODES = BEGINNING + INSERTERS * TIMES };

static struct node {
	struct node *_Atomic next; /* whoever reads it may do so while an inserter sets it */
	bool deleted;
} nodes[NODES], head;

static struct hd_semaphore no_searchers = HD_SEMAPHORE(1), no_inserters = HD_SEMAPHORE(1);
static struct hd_semaphore insertion = HD_SEMAPHORE(1);
static struct group searchers = GROUP, inserters = GROUP;
static _Atomic int searching, inserting, deleting, searches;

/* Walks to the end, and answers the last node; *length tells how many it has seen. */
static struct node *walk(int *length)
{
	struct node *n = &head;

	for (*length = 0; n->next != NULL; ++*length) {
		n = n->next;
		hd_checkpoint(); /* long enough for a deleter to come along, if it could */
		CHECK(!n->deleted);
	}
	return n;
}

static void *searcher(void *arg)
{
	for (int i = 0, length; i < TIMES; i++) {
		group_enter(&searchers, &no_searchers);
		searching++;
		walk(&length);
		CHECK(deleting == 0);
		searching--;
		searches++;
		group_leave(&searchers, &no_searchers);
	}
	return arg;
}

static void *inserter(void *arg)
{
	struct node *mine = &nodes[BEGINNING + number_of(arg) * TIMES];

	for (int i = 0, length; i < TIMES; i++) {
		group_enter(&inserters, &no_inserters);
		CHECK(hd_semaphore_wait(&insertion, HD_FOREVER) == 0);
		CHECK(++inserting == 1);
		struct node *last = walk(&length);
		hd_checkpoint();
		CHECK(last->next == NULL);
		last->next = &mine[i];
		CHECK(deleting == 0);
		inserting--;
		hd_semaphore_signal(&insertion);
		group_leave(&inserters, &no_inserters);
	}
	return arg;
}

static void *deleter(void *arg)
{
	for (int i = 0; i < TIMES; i++) {
		CHECK(hd_semaphore_wait(&no_searchers, HD_FOREVER) == 0);
		CHECK(hd_semaphore_wait(&no_inserters, HD_FOREVER) == 0);
		CHECK(++deleting == 1);
		struct node *n = head.next;
		hd_yield();
		n->deleted = true;
		head.next = n->next;
		CHECK(searching + inserting == 0);
		deleting--;
		hd_semaphore_signal(&no_inserters);
		hd_semaphore_signal(&no_searchers);
	}
	return arg;
}

static void *first(void *arg)
{
	struct crowd crowd = { 0 };
	int length;

	head.next = &nodes[0];
	for (int i = 0; i < BEGINNING - 1; i++)
		nodes[i].next = &nodes[i + 1];
	crowd_start(&crowd, SEARCHERS, "searcher", searcher);
	crowd_start(&crowd, INSERTERS, "inserter", inserter);
	crowd_start(&crowd, DELETERS, "deleter", deleter);
	crowd_join(&crowd);
	walk(&length);
	CHECK(length == NODES - DELETERS * TIMES);
	CHECK(searches == SEARCHERS * TIMES);
	printf("%d nodes are left after %d searches\n", length, searches);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL);
}
