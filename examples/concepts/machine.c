/* machine.c - a virtual machine with four instructions, a thousand times: each waits for a number, adds up all numbers from 1 to it, and answers. */
#include <heddle.h>
#include <stdio.h>
#include <stdlib.h>

enum op { RECEIVE, ADD, LOOP, REPLY };
static const enum op program[] = { RECEIVE, ADD, LOOP, REPLY };

struct vm {
	size_t pc;
	long counter, sum;
	struct hd_message m; /* the call that it answers */
};

/* A turn: executes up to `budget` instructions. The first one waits for a message: then the turn is over, and the stack is given back. */
static struct hd_interrupt interpret(void *self, uint64_t budget)
{
	struct vm *vm = self;

	for (; budget > 0; budget--)
		switch (program[vm->pc]) {
		case RECEIVE:
			if (hd_receive(NULL, &vm->m, 0) != 0)
				return hd_want_message(NULL, HD_FOREVER);
			vm->counter = vm->m.tag;
			vm->sum = 0;
			vm->pc++;
			break;
		case ADD:
			vm->sum += vm->counter--;
			vm->pc++;
			break;
		case LOOP:
			vm->pc = vm->counter > 0 ? 1 : 3;
			break;
		case REPLY:
			if (hd_reply(&vm->m, vm->sum, NULL, 0) != 0)
				return hd_want_end(NULL, EPIPE); /* the caller has given up */
			hd_message_drop(&vm->m);
			return hd_want_end(NULL, 0);
		}
	return hd_want_turn();
}

static const struct hd_machine_ops vm_ops = { .interpret = interpret, .drop = free, .budget = 100 };

/* A new virtual machine with its port; NULL: it could not be made. */
static hd_port *start(void)
{
	const struct hd_port_options unowned = { .unowned = true };
	hd_port *port = hd_port_new(&unowned);
	struct vm *vm = calloc(1, sizeof *vm);
	const struct hd_spawn how = { .detached = true, .port = port };

	if (port != NULL && vm != NULL && hd_spawn_machine(&how, &vm_ops, vm) > 0)
		return port;
	free(vm);
	hd_port_release(port);
	return NULL;
}

static void *first(void *arg)
{
	enum { N = 1000 };
	static hd_port *ports[N];
	long sum = 0;

	for (int i = 0; i < N; i++)
		if ((ports[i] = start()) == NULL)
			hd_fail(ENOMEM);
	for (int i = 0; i < N; i++) {
		struct hd_message answer;
		int err = hd_call(ports[i], i + 1, NULL, 0, &answer, HD_FOREVER);
		if (err != 0)
			hd_fail(err);
		sum += answer.tag;
		hd_message_drop(&answer);
		hd_port_release(ports[i]);
	}
	printf("%d machines have added up %ld\n", N, sum);
	return arg;
}

int main(void)
{
	int err = hd_run(NULL, first, NULL);

	if (err < 0)
		fprintf(stderr, "machine: %s\n", hd_error(err));
	return err != 0;
}
