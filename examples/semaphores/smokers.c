/* smokers.c - the cigarette smokers.
 *
 * A cigarette takes tobacco, paper and a match. Each of three smokers has plenty of one and lacks the other two. Agents lay
 * two different things on the table, one signal each, and no more before somebody has smoked; agents cannot be changed, and
 * do not know who is to smoke. If the smokers themselves took what they lack, one might take the paper and another the
 * tobacco, and neither could go on. So every thing has a porter who looks at what the others have reported, and calls the
 * one smoker who can use both. */
#include "crowd.h"

enum { THINGS = 3, ROUNDS = 5 };

static struct hd_semaphore table = HD_SEMAPHORE(1); /* an agent may lay something on it */
static struct hd_semaphore thing[THINGS];	    /* it lies on the table */
static struct hd_semaphore may_smoke[THINGS];	    /* smoker i has plenty of thing i */
static int lacking;				    /* the thing that is not on the table; guarded by table */

static struct hd_semaphore mutex = HD_SEMAPHORE(1); /* guards reported */
static bool reported[THINGS];

static int smoked[THINGS], cigarettes; /* guarded by table */

static void *agent(void *arg)
{
	int all_but = number_of(arg);

	for (int i = 0; i < ROUNDS; i++) {
		CHECK(hd_semaphore_wait(&table, HD_FOREVER) == 0);
		lacking = all_but;
		hd_semaphore_signal(&thing[(all_but + 1) % THINGS]);
		hd_yield();
		hd_semaphore_signal(&thing[(all_but + 2) % THINGS]);
	}
	return arg;
}

static void *porter(void *arg)
{
	int mine = number_of(arg);

	for (int i = 0; i < ROUNDS * (THINGS - 1); i++) {
		CHECK(hd_semaphore_wait(&thing[mine], HD_FOREVER) == 0);
		CHECK(hd_semaphore_wait(&mutex, HD_FOREVER) == 0);
		int other = (mine + 1) % THINGS, third = (mine + 2) % THINGS;
		CHECK(!reported[mine]);
		CHECK(!(reported[other] && reported[third]));
		bool two = reported[other] || reported[third];
		int smoker = reported[other] ? third : other;
		hd_checkpoint(); /* without the lock, another would report now, and both would think they are the first */
		if (two) {
			reported[other] = reported[third] = false;
			hd_semaphore_signal(&may_smoke[smoker]);
		} else {
			reported[mine] = true;
		}
		hd_semaphore_signal(&mutex);
	}
	return arg;
}

static void *smoker(void *arg)
{
	int has = number_of(arg);

	for (int i = 0; i < ROUNDS; i++) {
		CHECK(hd_semaphore_wait(&may_smoke[has], HD_FOREVER) == 0);
		CHECK(lacking == has);
		CHECK(smoked[has]++ == i);
		cigarettes++;
		hd_semaphore_signal(&table);
	}
	return arg;
}

static void *first(void *arg)
{
	struct crowd crowd = { 0 };

	crowd_start(&crowd, THINGS, "smoker", smoker);
	crowd_start(&crowd, THINGS, "porter", porter);
	crowd_start(&crowd, THINGS, "agent", agent);
	crowd_join(&crowd);
	for (int i = 0; i < THINGS; i++)
		CHECK(!reported[i]);
	CHECK(cigarettes == THINGS * ROUNDS);
	printf("%d cigarettes were smoked\n", cigarettes);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL);
}
