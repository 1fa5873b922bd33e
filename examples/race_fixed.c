/* race_fixed.c - race.c without its race: whoever gets the connection counts as its user before anybody else can have the lock. */
#include <assert.h>
#include <heddle.h>
#include <stdio.h>
#include <stdlib.h>

static struct hd_semaphore lock = HD_SEMAPHORE(1); /* guards what follows */
static struct connection {
	bool open;
	int users, requests;
} shared;

static struct connection *get(void)
{
	if (hd_semaphore_wait(&lock, HD_FOREVER) != 0)
		abort();
	shared.open = true;
	shared.users++;
	hd_semaphore_signal(&lock);
	return &shared;
}

static void release(struct connection *c)
{
	if (hd_semaphore_wait(&lock, HD_FOREVER) != 0)
		abort();
	if (--c->users == 0)
		c->open = false;
	hd_semaphore_signal(&lock);
}

static void request(struct connection *c)
{
	if (hd_semaphore_wait(&lock, HD_FOREVER) != 0)
		abort();
	assert(c->open);
	c->requests++;
	hd_semaphore_signal(&lock);
}

static void *client(void *arg)
{
	struct connection *c = get();

	request(c);
	release(c);
	return arg;
}

static void *first(void *arg)
{
	hd_pid ann = hd_spawn_with(&(struct hd_spawn){ .name = "ann" }, client, NULL);
	hd_pid bob = hd_spawn_with(&(struct hd_spawn){ .name = "bob" }, client, NULL);

	if (hd_join(ann, NULL, HD_FOREVER) == 0 && hd_join(bob, NULL, HD_FOREVER) == 0)
		printf("%d requests\n", shared.requests);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL);
}
