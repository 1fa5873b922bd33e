/* posix/failure.c - the POSIX face without memory: the errors that POSIX names, and nothing is lost. */
#define HD_PTHREAD_KEEP_NAMES
#include "harness/process.h"

#include <errno.h>
#include <heddle/pthread.h>
#include <limits.h>

#include "os/fault.h"

static hd_sem_t gate;

static void *answer(void *arg)
{
	CHECK_EQ(hd_sem_wait(&gate), 0);
	return arg;
}

HD_PROCESS_TEST(posix_thread_without_memory_is_eagain_and_loses_nothing)
{
	int failed = 0;
	pthread_t t;

	CHECK_EQ(hd_sem_init(&gate, 0, 1), 0);
	if (hd_pthread_create(&t, NULL, answer, NULL) != 0)
		SKIP("no process can have thread-local storage of its own here");
	CHECK_EQ(hd_pthread_join(t, NULL), 0);
	for (unsigned nth = 1;; nth++) {
		void *result = NULL;
		hd__fault_arm(HD__FAULT_ALLOC, nth, false);
		int err = hd_pthread_create(&t, NULL, answer, &t);
		hd__fault_arm(HD__FAULT_ALLOC, 0, false);
		if (err != 0) {
			CHECK_EQ(err, EAGAIN);
			failed++;
			continue;
		}
		CHECK_EQ(hd_sem_post(&gate), 0);
		CHECK_EQ(hd_pthread_join(t, &result), 0);
		CHECK_EQ(result, &t);
		break;
	}
	CHECK(failed >= 3); /* the thread's record, its process's, its storage */
}

static void *set_value(void *arg)
{
	pthread_key_t *key = arg;

	CHECK_EQ(hd_pthread_getspecific(*key), NULL);
	hd__fault_arm(HD__FAULT_ALLOC, 1, false);
	CHECK_EQ(hd_pthread_setspecific(*key, key), ENOMEM);
	CHECK_EQ(hd_pthread_getspecific(*key), NULL);
	CHECK_EQ(hd_pthread_setspecific(*key, key), 0);
	CHECK_EQ(hd_pthread_getspecific(*key), key);
	return NULL;
}

HD_PROCESS_TEST(posix_value_without_memory_is_enomem)
{
	pthread_key_t key;
	pthread_t t;

	CHECK_EQ(hd_pthread_key_create(&key, NULL), 0);
	if (hd_pthread_create(&t, NULL, set_value, &key) != 0)
		SKIP("no process can have thread-local storage of its own here");
	CHECK_EQ(hd_pthread_join(t, NULL), 0);
	CHECK_EQ(hd_pthread_key_delete(key), 0);
}

HD_PROCESS_TEST(posix_keys_run_out_at_their_limit)
{
	static pthread_key_t keys[PTHREAD_KEYS_MAX];
	pthread_key_t one_more;

	for (int i = 0; i < PTHREAD_KEYS_MAX; i++)
		CHECK_EQ(hd_pthread_key_create(&keys[i], NULL), 0);
	CHECK_EQ(hd_pthread_key_create(&one_more, NULL), EAGAIN);
	for (int i = 0; i < PTHREAD_KEYS_MAX; i++)
		CHECK_EQ(hd_pthread_key_delete(keys[i]), 0);
	CHECK_EQ(hd_pthread_key_create(&one_more, NULL), 0);
	CHECK_EQ(hd_pthread_key_delete(one_more), 0);
}
