/* link.c - a process that is watched fails, and takes its child with it; the first process hears of the end when both are dead. */
#include <heddle.h>
#include <stdio.h>

static struct hd_semaphore begun;

static void say(void *words)
{
	puts(words);
}

static void *child(void *arg)
{
	struct hd_cleanup goodbye;

	hd_cleanup_push(&goodbye, say, (void *)"the child ends");
	hd_semaphore_signal(&begun);
	if (hd_sleep(HD_SEC(1000)) != 0) /* its parent ends first */
		puts("cancelled");
	hd_cleanup_pop(&goodbye, false);
	return arg;
}

static void *parent(void *arg)
{
	const struct hd_spawn linked = { .link = true, .detached = true };
	struct hd_message m;

	if (hd_spawn_with(&linked, child, NULL) < 0 || hd_semaphore_wait(&begun, HD_FOREVER) != 0)
		return arg;
	if (hd_receive(NULL, &m, HD_FOREVER) != 0)
		return arg;
	hd_message_drop(&m);
	hd_fail(5); /* EIO */
	return arg;
}

static void *first(void *arg)
{
	hd_port *notices = hd_port_new(NULL), *port = hd_port_new(&(struct hd_port_options){ .unowned = true });
	struct hd_message m;

	if (notices == NULL || port == NULL)
		return arg;
	hd_pid pid = hd_spawn_with(&(struct hd_spawn){ .port = port, .watch = notices, .detached = true }, parent, NULL);
	if (pid < 0 || hd_send(port, 0, NULL, 0, HD_FOREVER) != 0 || hd_receive(notices, &m, HD_FOREVER) != 0)
		return arg;
	const struct hd_ended *ended = m.data;
	if (m.tag == HD_TAG_ENDED && ended->pid == pid && ended->end.kind == HD_END_FAILED)
		printf("the parent has failed: error %d\n", -ended->end.err);
	hd_message_drop(&m);
	printf("a message to it: %s\n", hd_error(hd_send(port, 0, NULL, 0, HD_FOREVER)));
	hd_port_release(port);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
