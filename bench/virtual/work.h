/* work.h - included before each bench case of heddle-virtual: work is not done, but charged to the virtual CPU of its thread. */
#ifndef BENCH_VIRTUAL_WORK_H
#define BENCH_VIRTUAL_WORK_H

#include "../harness.h"

/* In place of bench_work. The result is another one; no case looks at it. */
uint64_t charge_work(uint64_t x, int us);

/* In place of bench_merged. */
void charge_merges(long numbers, double times);

#define bench_work(x, us) charge_work((x), (us))
#define bench_crunch(x) charge_work((x), BENCH_CRUNCH_US)
#define bench_merged(numbers, times) charge_merges((numbers), (times))

#endif
