/* rendezvous.c - a cook and a waiter: no dish is set down, each goes from hand to hand. */
#include <errno.h>
#include <heddle.h>
#include <stdio.h>

static hd_queue *pass;

static void *cook(void *arg)
{
	for (int dish = 1; dish <= 3; dish++)
		if (hd_queue_put(pass, &dish, HD_FOREVER) != 0) /* waits until the waiter takes it */
			return arg;
	hd_queue_close(pass);
	return arg;
}

static void *first(void *arg)
{
	int dish, err;

	if ((pass = hd_queue_new_rendezvous(sizeof dish)) == NULL)
		return arg;
	printf("no taker waits: %s\n", hd_queue_try_put(pass, &(int){ 0 }) == -EAGAIN ? "not put" : "put");
	hd_pid pid = hd_spawn(cook, NULL);
	if (pid < 0)
		hd_queue_close(pass);
	while ((err = hd_queue_next(pass, &dish, HD_FOREVER)) == 0)
		printf("dish %d, and %zu set down\n", dish, hd_queue_length(pass));
	printf("the end: %s\n", err == -EPIPE ? "closed" : "something else");
	if (hd_join(pid, NULL, HD_FOREVER) != 0)
		hd_shutdown(1);
	hd_queue_drop(pass);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
