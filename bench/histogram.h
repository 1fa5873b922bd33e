/* histogram.h - counts of times, for percentiles of them: buckets that grow with the time, each at most 1/64 wide.
 *
 * Below 64 ns a bucket is one nanosecond; from there, every doubling of the time has 64 buckets. */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include "harness.h"

enum { HISTOGRAM_FINE = 6, HISTOGRAM_BUCKETS = (40 - HISTOGRAM_FINE) << HISTOGRAM_FINE }; /* up to 2^39 ns: 9 minutes */

struct histogram {
	uint64_t count;
	uint32_t buckets[HISTOGRAM_BUCKETS];
};

static inline unsigned histogram_bucket(uint64_t ns)
{
	unsigned doublings = 63u - HISTOGRAM_FINE - (unsigned)__builtin_clzll(ns | 1u << HISTOGRAM_FINE);
	unsigned bucket = (doublings << HISTOGRAM_FINE) + (unsigned)(ns >> doublings);

	return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

static inline void histogram_add(struct histogram *h, uint64_t ns)
{
	h->count++;
	h->buckets[histogram_bucket(ns)]++;
}

static inline void histogram_merge(struct histogram *into, const struct histogram *h)
{
	into->count += h->count;
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		into->buckets[i] += h->buckets[i];
}

/* The middle of a bucket. */
static inline double histogram_value(unsigned bucket)
{
	unsigned doublings = bucket >> HISTOGRAM_FINE;

	if (doublings == 0)
		return bucket;
	doublings--;
	return ((double)(bucket - (doublings << HISTOGRAM_FINE)) + 0.5) * (double)(1ull << doublings);
}

/* The time that a share of all, such as 0.99, did not exceed, in ns. */
static inline double histogram_quantile(const struct histogram *h, double share)
{
	uint64_t below = 0, wanted = (uint64_t)((double)h->count * share);

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		if ((below += h->buckets[i]) > wanted)
			return histogram_value(i);
	return 0;
}

/* Prints the median and the tail, in us. */
static inline void histogram_print(const struct histogram *h)
{
	bench_print("p50", histogram_quantile(h, 0.5) / 1e3);
	bench_print("p99", histogram_quantile(h, 0.99) / 1e3);
	bench_print("p99.9", histogram_quantile(h, 0.999) / 1e3);
}
#endif
