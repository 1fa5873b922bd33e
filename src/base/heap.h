/* base/heap.h - which of some numbered slots has the least key.
 *
 * Owns:       an array of entries, one for each slot: the first `count` are a heap, the others are the free slots.
 * Invariant:  no entry of the heap comes before its parent; of two with the same key the one that was pushed first comes first.
 * Locking:    the caller's.
 * Callers:    queues with an order. (Deadlines have a heap of their own, which forgets: timer/timers.c.) */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hd__heap_entry {
	int64_t key;
	uint64_t arrival; /* the number of its push */
	size_t slot;
};

/* So many slots, all free. */
static inline void hd__heap_init(struct hd__heap_entry *heap, size_t slots)
{
	for (size_t i = 0; i < slots; i++)
		heap[i].slot = i;
}

static inline bool hd__heap_before(const struct hd__heap_entry *a, const struct hd__heap_entry *b)
{
	return a->key != b->key ? a->key < b->key : a->arrival < b->arrival;
}

/* Takes the free slot heap[count] into the heap, and returns its number. */
static inline size_t hd__heap_push(struct hd__heap_entry *heap, size_t count, int64_t key, uint64_t arrival)
{
	const struct hd__heap_entry x = { key, arrival, heap[count].slot };
	size_t i = count;

	while (i > 0 && hd__heap_before(&x, &heap[(i - 1) / 2])) {
		heap[i] = heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap[i] = x;
	return x.slot;
}

/* Takes the slot with the least key out of the heap, which is not empty: it is free, and the entry behind the heap has it. */
static inline size_t hd__heap_pop(struct hd__heap_entry *heap, size_t count)
{
	const size_t slot = heap[0].slot, last = count - 1;
	const struct hd__heap_entry x = heap[last];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < last) {
		if (child + 1 < last && hd__heap_before(&heap[child + 1], &heap[child]))
			child++;
		if (!hd__heap_before(&heap[child], &x))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = x;
	heap[last].slot = slot;
	return slot;
}

#endif
