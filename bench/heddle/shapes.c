/* shapes.c - everyday shapes of programs, with nothing but defaults. An item is tens of microseconds of work, so that these cases
 * show whether the workers share the work, and hardly what a call costs. */
#include <stdatomic.h>

#include "../harness.h"
#include "cases.h"

static long items;	      /* of the running repetition */
static atomic_long handled;   /* of these, how many were worked on */
static atomic_ullong results; /* of all the work, so that no compiler leaves it out */

static hd_pid pids[BENCH_SLEEPERS];

/* Answers how long `count` processes took, and checks that they handled `should` items between them. */
static double time_all(int count, hd_entry entry, long should)
{
	atomic_store_explicit(&handled, 0, memory_order_relaxed); /* the processes do not exist yet */

	double start = bench_now();
	for (int i = 0; i < count; i++)
		pids[i] = bench_ok(hd_spawn(entry, (void *)(intptr_t)i), "hd_spawn");
	for (int i = 0; i < count; i++)
		bench_ok(hd_join(pids[i], NULL, HD_FOREVER), "hd_join");
	double took = bench_now() - start;

	bench_same("shape: items were lost", atomic_load_explicit(&handled, memory_order_relaxed), should);
	return took;
}

/* What a process has done, said once, at its end. */
static void account(long done, uint64_t result)
{
	atomic_fetch_add_explicit(&handled, done, memory_order_relaxed); /* only counted */
	atomic_fetch_add_explicit(&results, result, memory_order_relaxed);
}

/* No shape yet: the work of an item of the pool, by the first process alone. */
static double work_alone(long n)
{
	double start = bench_now();
	uint64_t x = 0;

	for (long i = n; i > 0; i--)
		x = bench_work(x + (uint64_t)i, BENCH_POOL_US);
	account(n, x);
	return bench_now() - start;
}

void shape_work(void)
{
	bench_shape("shape_work", work_alone, BENCH_POOL_ITEMS / 4);
}

static hd_queue *new_queue(size_t capacity)
{
	hd_queue *q = hd_queue_new(sizeof(uint64_t), capacity);
	if (q == NULL)
		bench_die("hd_queue_new", ENOMEM);
	return q;
}

static void put_all(hd_queue *q)
{
	for (uint64_t item = (uint64_t)items; item > 0; item--)
		bench_ok(hd_queue_put(q, &item, HD_FOREVER), "hd_queue_put");
	bench_ok(hd_queue_close(q), "hd_queue_close");
}

/* Takes an item. Answers false when the queue is closed and empty. */
static bool take(hd_queue *q, uint64_t *item)
{
	int error = hd_queue_next(q, item, HD_FOREVER);
	if (error != -EPIPE)
		bench_ok(error, "hd_queue_next");
	return error == 0;
}

static hd_queue *pool;

static void *pool_member(void *arg)
{
	uint64_t item, x = 0;
	long done = 0;

	if ((intptr_t)arg == 0) {
		put_all(pool);
		return NULL;
	}
	for (; take(pool, &item); done++)
		x = bench_work(x + item, BENCH_POOL_US);
	account(done, x);
	return NULL;
}

static double run_pool(long n)
{
	items = n;
	pool = new_queue(BENCH_POOL_CAPACITY);
	double took = time_all(1 + bench_crew(), pool_member, n);
	hd_queue_drop(pool);
	return took;
}

void shape_pool(void)
{
	bench_shape("shape_pool", run_pool, BENCH_POOL_ITEMS);
}

/* Jobs in a list under a mutex; the semaphore has a signal for each. A job that is 0 ends its taker. */
static struct {
	struct hd_mutex mutex;
	struct hd_semaphore there;
	long first, end;
	uint64_t list[BENCH_JOBS + BENCH_CREW_MAX];
} jobs;

static void add_job(uint64_t job)
{
	bench_ok(hd_mutex_lock(&jobs.mutex, HD_FOREVER), "hd_mutex_lock");
	jobs.list[jobs.end++] = job;
	bench_ok(hd_mutex_unlock(&jobs.mutex), "hd_mutex_unlock");
	bench_ok(hd_semaphore_signal(&jobs.there), "hd_semaphore_signal");
}

static uint64_t take_job(void)
{
	bench_ok(hd_semaphore_wait(&jobs.there, HD_FOREVER), "hd_semaphore_wait");
	bench_ok(hd_mutex_lock(&jobs.mutex, HD_FOREVER), "hd_mutex_lock");
	uint64_t job = jobs.list[jobs.first++];
	bench_ok(hd_mutex_unlock(&jobs.mutex), "hd_mutex_unlock");
	return job;
}

static void *job_member(void *arg)
{
	uint64_t job, x = 0;
	long done = 0;

	if ((intptr_t)arg == 0) {
		for (long i = items; i > 0; i--)
			add_job((uint64_t)i);
		for (int i = bench_crew(); i > 0; i--)
			add_job(0);
		return NULL;
	}
	for (; (job = take_job()) != 0; done++)
		x = bench_work(x + job, BENCH_JOB_US);
	account(done, x);
	return NULL;
}

static double run_jobs(long n)
{
	items = n;
	jobs.first = jobs.end = 0;
	return time_all(1 + bench_crew(), job_member, n);
}

void shape_jobs(void)
{
	bench_shape("shape_jobs", run_jobs, BENCH_JOBS);
}

/* The first stage makes the items, each other stage has a queue that it takes them from. */
static hd_queue *belts[BENCH_PIPELINE_STAGES];

static void *stage(void *arg)
{
	int me = (int)(intptr_t)arg;
	hd_queue *from = belts[me], *to = me + 1 < BENCH_PIPELINE_STAGES ? belts[me + 1] : NULL;
	uint64_t item = 0, x = 0;
	long done = 0;

	while (me == 0 ? done < items : take(from, &item)) {
		x = bench_work(x + item, BENCH_PIPELINE_US);
		done++;
		if (to != NULL)
			bench_ok(hd_queue_put(to, &x, HD_FOREVER), "hd_queue_put");
	}
	if (to != NULL)
		bench_ok(hd_queue_close(to), "hd_queue_close");
	account(done, x);
	return NULL;
}

static double run_pipeline(long n)
{
	items = n;
	for (int i = 1; i < BENCH_PIPELINE_STAGES; i++)
		belts[i] = new_queue(BENCH_PIPELINE_CAPACITY);
	double took = time_all(BENCH_PIPELINE_STAGES, stage, n * BENCH_PIPELINE_STAGES);
	for (int i = 1; i < BENCH_PIPELINE_STAGES; i++)
		hd_queue_drop(belts[i]);
	return took;
}

void shape_pipeline(void)
{
	bench_shape("shape_pipeline", run_pipeline, BENCH_PIPELINE_ITEMS);
}

/* A bounded buffer in a monitor. */
static struct {
	struct hd_monitor monitor;
	struct hd_condition not_full, not_empty;
	unsigned count, first;
	uint64_t ring[BENCH_MONITOR_CAPACITY];
} buffer;

static void buffer_put(uint64_t item)
{
	bench_ok(hd_monitor_enter(&buffer.monitor, HD_FOREVER), "hd_monitor_enter");
	while (buffer.count == BENCH_MONITOR_CAPACITY)
		bench_ok(hd_monitor_wait(&buffer.monitor, &buffer.not_full, HD_FOREVER), "hd_monitor_wait");
	buffer.ring[(buffer.first + buffer.count++) % BENCH_MONITOR_CAPACITY] = item;
	bench_ok(hd_monitor_signal(&buffer.monitor, &buffer.not_empty), "hd_monitor_signal");
	bench_ok(hd_monitor_exit(&buffer.monitor), "hd_monitor_exit");
}

static uint64_t buffer_take(void)
{
	bench_ok(hd_monitor_enter(&buffer.monitor, HD_FOREVER), "hd_monitor_enter");
	while (buffer.count == 0)
		bench_ok(hd_monitor_wait(&buffer.monitor, &buffer.not_empty, HD_FOREVER), "hd_monitor_wait");
	uint64_t item = buffer.ring[buffer.first];
	buffer.first = (buffer.first + 1) % BENCH_MONITOR_CAPACITY;
	buffer.count--;
	bench_ok(hd_monitor_signal(&buffer.monitor, &buffer.not_full), "hd_monitor_signal");
	bench_ok(hd_monitor_exit(&buffer.monitor), "hd_monitor_exit");
	return item;
}

/* Half of the crew produces, half consumes; the producers work before they put, the consumers after they took. */
static void *monitor_member(void *arg)
{
	bool produces = (intptr_t)arg % 2 == 0;
	long share = items / (bench_crew() / 2);
	uint64_t x = 0;

	for (long i = share; i > 0; i--) {
		if (!produces)
			x += buffer_take();
		x = bench_work(x, BENCH_MONITOR_US);
		if (produces)
			buffer_put(x);
	}
	account(produces ? 0 : share, x);
	return NULL;
}

static double run_monitor(long n)
{
	items = n;
	return time_all(bench_crew(), monitor_member, n);
}

void shape_monitor(void)
{
	bench_shape("shape_monitor", run_monitor, BENCH_MONITOR_ITEMS);
}

static struct hd_mutex mutex;
static uint64_t guarded; /* by the mutex, or by the rwlock */

static void *locker(void *arg)
{
	long share = items / bench_crew();
	uint64_t x = (uintptr_t)arg;

	for (long i = share; i > 0; i--) {
		bench_ok(hd_mutex_lock(&mutex, HD_FOREVER), "hd_mutex_lock");
		x += guarded++;
		bench_ok(hd_mutex_unlock(&mutex), "hd_mutex_unlock");
		x = bench_work(x, BENCH_MUTEX_US);
	}
	account(share, x);
	return NULL;
}

static double run_mutex(long n)
{
	items = n;
	guarded = 0;
	double took = time_all(bench_crew(), locker, n);
	bench_same("shape_mutex: wrong count", (int64_t)guarded, n);
	return took;
}

void shape_mutex(void)
{
	bench_shape("shape_mutex", run_mutex, BENCH_MUTEX_ITEMS);
}

static struct hd_rwlock rwlock;

/* The crew's turns to write are spread evenly. All the work is done inside the lock. */
static void *reader_or_writer(void *arg)
{
	long share = items / bench_crew(), me = (intptr_t)arg * BENCH_RWLOCK_WRITE_EVERY / bench_crew();
	uint64_t x = 0;

	for (long i = 0; i < share; i++) {
		if ((i + me) % BENCH_RWLOCK_WRITE_EVERY == 0) {
			bench_ok(hd_rwlock_write(&rwlock, HD_FOREVER), "hd_rwlock_write");
			guarded = x = bench_work(x + guarded, BENCH_RWLOCK_US);
		} else {
			bench_ok(hd_rwlock_read(&rwlock, HD_FOREVER), "hd_rwlock_read");
			x = bench_work(x + guarded, BENCH_RWLOCK_US);
		}
		bench_ok(hd_rwlock_unlock(&rwlock), "hd_rwlock_unlock");
	}
	account(share, x);
	return NULL;
}

static double run_rwlock(long n)
{
	items = n;
	return time_all(bench_crew(), reader_or_writer, n);
}

void shape_rwlock(void)
{
	bench_shape("shape_rwlock", run_rwlock, BENCH_RWLOCK_ITEMS);
}

static void *sleeper(void *arg)
{
	long share = items / BENCH_SLEEPERS;
	uint64_t x = (uintptr_t)arg;

	for (long i = share; i > 0; i--) {
		bench_ok(hd_sleep(HD_US(BENCH_SLEEPER_NAP_US)), "hd_sleep");
		x = bench_work(x, BENCH_SLEEPER_US);
	}
	account(share, x);
	return NULL;
}

static double run_sleepers(long n)
{
	items = n;
	return time_all(BENCH_SLEEPERS, sleeper, n);
}

void shape_sleepers(void)
{
	bench_shape("shape_sleepers", run_sleepers, BENCH_SLEEPER_ITEMS);
}

static void *task(void *arg)
{
	return (void *)(uintptr_t)bench_work((uintptr_t)arg, BENCH_PROMISE_US);
}

static double run_promises(long n)
{
	hd_promise *batch[BENCH_PROMISE_BATCH];
	uint64_t x = 0;
	double start = bench_now();

	for (long done = 0; done < n; done += BENCH_PROMISE_BATCH) {
		for (int i = 0; i < BENCH_PROMISE_BATCH; i++) {
			batch[i] = hd_promise_spawn(task, (void *)(uintptr_t)(done + i));
			if (batch[i] == NULL)
				bench_die("hd_promise_spawn", ENOMEM);
		}
		for (int i = 0; i < BENCH_PROMISE_BATCH; i++) {
			void *value;
			bench_ok(hd_promise_value(batch[i], &value, HD_FOREVER), "hd_promise_value");
			hd_promise_release(batch[i]);
			x += (uintptr_t)value;
		}
	}
	account(n, x);
	return bench_now() - start;
}

void shape_promise(void)
{
	bench_shape("shape_promise", run_promises, BENCH_PROMISES);
}

/* Fork and join: a process sorts one half and has another process sort the other half. */
struct part {
	int32_t *numbers, *spare;
	long count;
};

static void merge(const struct part *left, const struct part *right, int32_t *to)
{
	const int32_t *l = left->numbers, *r = right->numbers, *l_end = l + left->count, *r_end = r + right->count;

	while (l < l_end && r < r_end)
		if (*r < *l)
			*to++ = *r++;
		else
			*to++ = *l++;
	memcpy(to, l, (size_t)(l_end - l) * sizeof *to);
	memcpy(to + (l_end - l), r, (size_t)(r_end - r) * sizeof *to);
}

static void sort_by_insertion(int32_t *numbers, long count)
{
	for (long i = 1; i < count; i++) {
		int32_t number = numbers[i];
		long k = i;

		for (; k > 0 && number < numbers[k - 1]; k--)
			numbers[k] = numbers[k - 1];
		numbers[k] = number;
	}
}

static void *sort(void *arg)
{
	struct part *all = arg;
	long half = all->count / 2;
	struct part left = { all->numbers, all->spare, half };
	struct part right = { all->numbers + half, all->spare + half, all->count - half };

	if (all->count <= BENCH_SORT_BY_INSERTION) {
		sort_by_insertion(all->numbers, all->count);
		bench_merged(all->count, 2.5);
		return NULL;
	}
	if (all->count <= BENCH_SORT_CUTOFF) {
		sort(&left);
		sort(&right);
	} else {
		hd_pid other = bench_ok(hd_spawn(sort, &left), "hd_spawn");
		sort(&right);
		bench_ok(hd_join(other, NULL, HD_FOREVER), "hd_join");
	}
	merge(&left, &right, all->spare);
	memcpy(all->numbers, all->spare, (size_t)all->count * sizeof *all->numbers);
	bench_merged(all->count, 1);
	return NULL;
}

static double run_sort(long n)
{
	long count = n * BENCH_SORT_ITEM;
	struct part all = { bench_array((size_t)count, sizeof(int32_t)), bench_array((size_t)count, sizeof(int32_t)), count };
	uint64_t seed = 1;

	for (long i = 0; i < count; i++) {
		seed = bench_step(seed);
		all.numbers[i] = (int32_t)(seed >> 32);
	}
	double start = bench_now();
	sort(&all);
	double took = bench_now() - start;

	for (long i = 1; i < count; i++)
		bench_same("shape_sort: not sorted", all.numbers[i - 1] <= all.numbers[i], true);
	free(all.numbers);
	free(all.spare);
	return took;
}

void shape_sort(void)
{
	bench_shape("shape_sort", run_sort, BENCH_SORT_ITEMS);
}
