/* model/model.c - the rules of scheduling on one worker, as plainly as they can be said.
 *
 * Invariant:  `ready` has the ready processes of all levels in one list. Who is put at its end is behind its equals, who is
 *             put at its beginning is before them, and the next is the first of those that have the highest priority: levels
 *             need not exist.
 *
 * A process that stops in the middle of an operation has its result already, or gets it from whoever wakes it; it is
 * logged when the process goes on. Numbers in parentheses are DESIGN's rules. */
#include "model/model.h"

#include <errno.h>
#include <string.h>

#include "harness/harness.h"

enum { NOBODY = 0xff, HANDOFFS_MAX = 64 };

struct list {
	unsigned count;
	uint8_t of[PROCESSES_MAX];
};

enum bond { JOINABLE, JOINED, DETACHED };

struct process {
	int state; /* enum hd_state; 0: not spawned, or forgotten */
	int priority;
	bool suspended, has_run;
	int why; /* HD_WAITING: enum hd_wait */
	enum bond bond;
	uint8_t joiner; /* JOINED: who */
	uint8_t joins;	/* whom it is joining, or NOBODY */
	unsigned lent;	/* the turn in which its joiner let it run; 0: it was its own */
	int index, result;
	struct op op;
	int value; /* ended: for its joiner */
};

struct model {
	const struct script *script;
	enum hd_preempted preempted;
	struct process p[PROCESSES_MAX];
	bool alive[PROCESSES_MAX];
	struct list ready, waiters[SEMAPHORES_MAX];
	unsigned signals[SEMAPHORES_MAX];
	unsigned running;
	bool to_tail;	  /* the runner goes behind its equals at the end of this operation */
	unsigned hand_to; /* who runs next, out of turn; NOBODY */
	unsigned handoffs;
	unsigned turn; /* counts who was chosen as the first of the ready ones */
	struct release release;
	struct log *log;
	unsigned long *corners;
};

static void meet(struct model *m, enum corner corner)
{
	if (m->corners != NULL)
		m->corners[corner]++;
}

static void insert(struct list *l, unsigned at, unsigned p)
{
	memmove(&l->of[at + 1], &l->of[at], l->count - at);
	l->of[at] = (uint8_t)p;
	l->count++;
}

static void append(struct list *l, unsigned p)
{
	insert(l, l->count, p);
}

static unsigned take(struct list *l, unsigned at)
{
	unsigned p = l->of[at];

	l->count--;
	memmove(&l->of[at], &l->of[at + 1], l->count - at);
	return p;
}

static void take_out(struct list *l, unsigned p)
{
	unsigned at = 0;

	while (l->of[at] != p)
		at++;
	take(l, at);
}

/* Where in `ready` the next one is: the first of the highest priority. `ready` is not empty. */
static unsigned best(const struct model *m)
{
	unsigned best = 0;

	for (unsigned i = 1; i < m->ready.count; i++)
		if (m->p[m->ready.of[i]].priority > m->p[m->ready.of[best]].priority)
			best = i;
	return best;
}

/* The highest priority that is ready; 0: none. */
static int highest(const struct model *m)
{
	return m->ready.count == 0 ? 0 : m->p[m->ready.of[best(m)]].priority;
}

/* Waking and resuming put at the tail (4, 7); one that is suspended keeps what it was granted and stays (7). */
static void make_ready(struct model *m, unsigned p)
{
	if (m->p[p].suspended) {
		if (m->p[p].state == HD_WAITING)
			meet(m, CORNER_GRANT_KEPT);
		m->p[p].state = HD_SUSPENDED;
	} else {
		m->p[p].state = HD_READY;
		append(&m->ready, p);
	}
}

static int spawn(struct model *m, struct op op)
{
	m->p[op.who] = (struct process){ .priority = op.priority != 0 ? op.priority : m->p[m->running].priority,
					 .suspended = op.flag,
					 .joins = NOBODY,
					 .index = -1 };
	m->alive[op.who] = true;
	make_ready(m, op.who);
	return 0;
}

static int suspend(struct model *m, unsigned p)
{
	if (m->p[p].state == 0 || m->p[p].state == HD_ENDED)
		return -ESRCH;
	if (m->p[p].state == HD_WAITING)
		meet(m, CORNER_SUSPENDED_IN_QUEUE);
	m->p[p].suspended = true;
	if (m->p[p].state == HD_READY)
		take_out(&m->ready, p);
	if (m->p[p].state == HD_READY || m->p[p].state == HD_RUNNING)
		m->p[p].state = HD_SUSPENDED; /* a waiting one keeps its place */
	return 0;
}

static int resume(struct model *m, unsigned p)
{
	if (m->p[p].state == 0 || m->p[p].state == HD_ENDED)
		return -ESRCH;
	if (!m->p[p].suspended)
		return -EALREADY;
	m->p[p].suspended = false;
	if (m->p[p].state == HD_SUSPENDED)
		make_ready(m, p);
	return 0;
}

static int set_priority(struct model *m, unsigned p, int priority)
{
	if (priority < 10 || priority > 80)
		return -EINVAL;
	if (m->p[p].state == 0 || m->p[p].state == HD_ENDED)
		return -ESRCH;
	if (m->p[p].priority == priority)
		return 0;
	m->p[p].priority = priority;
	if (m->p[p].state == HD_READY) { /* the tail of its new level */
		take_out(&m->ready, p);
		append(&m->ready, p);
		meet(m, CORNER_MOVED_QUEUED);
	} else if (m->p[p].state == HD_RUNNING) {
		m->to_tail = true;
		if (highest(m) > priority)
			meet(m, CORNER_LOWERED_ITSELF);
	} else {
		meet(m, CORNER_MOVED_WAITING);
	}
	return 0;
}

static int wait(struct model *m, unsigned s, bool try)
{
	if (m->signals[s] > 0) {
		m->signals[s]--;
		return 0;
	}
	if (try)
		return -EAGAIN;
	m->p[m->running].state = HD_WAITING;
	m->p[m->running].why = HD_WAIT_SEMAPHORE;
	append(&m->waiters[s], m->running);
	return 0;
}

/* To whoever waits longest, whatever its priority (6). */
static int signal(struct model *m, unsigned s)
{
	if (m->waiters[s].count == 0) {
		m->signals[s]++;
		return 0;
	}
	unsigned first = take(&m->waiters[s], 0);
	for (unsigned i = 0; i < m->waiters[s].count; i++)
		if (m->p[m->waiters[s].of[i]].priority > m->p[first].priority)
			meet(m, CORNER_BARGED);
	make_ready(m, first);
	return 0;
}

/* Joining one that never ran lets it run at once, if nothing ready has a higher priority than it (9). */
static void offer_hand_off(struct model *m, unsigned p)
{
	if (m->p[p].state != HD_READY || m->p[p].has_run)
		return;
	if (highest(m) > m->p[p].priority) {
		meet(m, CORNER_HAND_OFF_REFUSED);
	} else if (m->handoffs == HANDOFFS_MAX) {
		meet(m, CORNER_HAND_OFF_LIMIT);
	} else {
		if (m->ready.of[best(m)] != p)
			meet(m, CORNER_HAND_OFF);
		m->hand_to = p;
	}
}

static int join(struct model *m, unsigned p, bool try)
{
	unsigned me = m->running;
	struct process *it = &m->p[p];

	if (p == me) {
		meet(m, CORNER_SELF_JOIN);
		return -EDEADLK;
	}
	if (it->state == 0) {
		meet(m, CORNER_JOIN_DEAD);
		return -ESRCH;
	}
	if (it->bond == DETACHED) {
		meet(m, CORNER_JOIN_DETACHED);
		return -EINVAL;
	}
	if (it->bond == JOINED) {
		meet(m, CORNER_SECOND_JOINER);
		return -EBUSY;
	}
	if (it->state == HD_ENDED) {
		meet(m, CORNER_JOINED_ZOMBIE);
		it->state = 0;
		return it->value;
	}
	if (try)
		return -ETIMEDOUT;
	it->bond = JOINED;
	it->joiner = (uint8_t)me;
	m->p[me].joins = (uint8_t)p;
	m->p[me].state = HD_WAITING;
	m->p[me].why = HD_WAIT_JOIN;
	offer_hand_off(m, p);
	return 0; /* its result comes from the one that ends */
}

static int detach(struct model *m, unsigned p)
{
	if (m->p[p].state == 0)
		return -ESRCH;
	if (m->p[p].bond != JOINABLE)
		return m->p[p].bond == JOINED ? -EBUSY : -EINVAL;
	m->p[p].bond = DETACHED;
	if (m->p[p].state == HD_ENDED)
		m->p[p].state = 0;
	return 0;
}

/* Who ends in the turn that its joiner lent it gives it back (9). */
static void hand_back(struct model *m, const struct process *me)
{
	if (me->lent != m->turn || m->p[me->joiner].state != HD_READY || highest(m) > m->p[me->joiner].priority)
		return;
	if (m->handoffs == HANDOFFS_MAX) {
		meet(m, CORNER_HAND_BACK_LIMIT);
		return;
	}
	if (m->ready.of[best(m)] != me->joiner)
		meet(m, CORNER_HAND_BACK);
	m->hand_to = me->joiner;
}

static void end(struct model *m, int value)
{
	struct process *me = &m->p[m->running];

	m->alive[m->running] = false;
	me->state = me->bond == DETACHED ? 0 : HD_ENDED;
	me->value = value;
	if (me->bond == JOINED) { /* it is forgotten when its joiner goes on */
		m->p[me->joiner].result = value;
		make_ready(m, me->joiner);
		hand_back(m, me);
	}
}

static int look(const struct model *m, unsigned p)
{
	const struct process *it = &m->p[p];

	if (it->state == 0)
		return -ESRCH;
	return script_look(it->state, HD_ENDED, it->state == HD_WAITING ? it->why : 0, it->suspended, it->priority);
}

static int perform(struct model *m, struct op op)
{
	switch (op.kind) {
	case OP_SPAWN:
		return spawn(m, op);
	case OP_RESUME:
		return resume(m, op.who);
	case OP_SUSPEND:
		return suspend(m, op.who);
	case OP_YIELD:
		m->to_tail = true;
		return 0;
	case OP_WAIT:
	case OP_TRY_WAIT:
		return wait(m, op.who, op.kind == OP_TRY_WAIT);
	case OP_SIGNAL:
		return signal(m, op.who);
	case OP_POST: /* the news is taken in first */
		m->to_tail = op.flag;
		return signal(m, op.who);
	case OP_SET_PRIORITY:
		return set_priority(m, op.who, op.priority);
	case OP_JOIN:
	case OP_TRY_JOIN:
		return join(m, op.who, op.kind == OP_TRY_JOIN);
	case OP_DETACH:
		return detach(m, op.who);
	case OP_LOOK:
		return look(m, op.who);
	default: /* OP_CHECKPOINT */
		return 0;
	}
}

/* The end of an operation is a safe point (1, 2, 3). Whoever runs from now on is m->running. */
static void give_way(struct model *m)
{
	unsigned me = m->running;

	if (m->p[me].state == HD_RUNNING) {
		bool preempted = highest(m) > m->p[me].priority;
		if (!preempted && !(m->to_tail && highest(m) == m->p[me].priority))
			return;
		meet(m, preempted ? CORNER_PREEMPTED : CORNER_YIELDED);
		m->p[me].state = HD_READY;
		if (m->to_tail || m->preempted == HD_PREEMPTED_TAIL)
			append(&m->ready, me);
		else
			insert(&m->ready, 0, me);
	}
	if (m->hand_to != NOBODY) {
		if (!m->p[m->hand_to].has_run)
			m->p[m->hand_to].lent = m->turn;
		m->running = m->hand_to;
		take_out(&m->ready, m->running);
		m->handoffs++;
	} else {
		CHECK(m->ready.count > 0); /* main is always ready or running */
		m->running = take(&m->ready, best(m));
		m->p[m->running].lent = 0;
		m->handoffs = 0;
		m->turn++;
	}
	m->p[m->running].state = HD_RUNNING;
	m->p[m->running].has_run = true;
}

/* The runner's operation is over: what it did and got is written down. */
static void write_down(struct model *m)
{
	struct process *me = &m->p[m->running];

	if (me->joins != NOBODY) {
		m->p[me->joins].state = 0;
		me->joins = NOBODY;
	}
	CHECK(m->log->count < EVENTS_MAX);
	m->log->events[m->log->count++] = (struct event){
		.process = (uint8_t)m->running, .op = me->op, .index = (int16_t)me->index, .result = me->result
	};
	me->index++;
}

/* What the runner does next; false when it has nothing left to do. */
static bool next_op(struct model *m, struct op *op)
{
	unsigned index = (unsigned)m->p[m->running].index;

	if (index < m->script->process[m->running].count) {
		*op = m->script->process[m->running].ops[index];
		return true;
	}
	return m->running == 0 && script_release(m->script, &m->release, m->alive, op);
}

void model_run(const struct script *s, enum hd_preempted preempted, struct log *log, unsigned long *corners)
{
	static struct model model;
	struct model *m = &model;

	*m = (struct model){
		.script = s, .preempted = preempted, .hand_to = NOBODY, .turn = 1, .log = log, .corners = corners
	};
	m->p[0] = (struct process){ .state = HD_RUNNING, .priority = 10, .has_run = true, .joins = NOBODY, .index = -1 };
	for (unsigned i = 0; i < s->semaphores; i++)
		m->signals[i] = s->signals[i];
	log->count = 0;
	for (;;) {
		struct process *me = &m->p[m->running];

		write_down(m);
		bool goes_on = next_op(m, &me->op);
		if (m->running == 0 && !goes_on)
			return;
		m->to_tail = false;
		m->hand_to = NOBODY;
		if (goes_on && me->op.kind != OP_EXIT) {
			me->result = perform(m, me->op);
		} else {
			int value = script_result(m->running, (unsigned)me->index);
			if (goes_on) {
				me->result = 0;
				write_down(m); /* it will not come back to do so */
				value = me->op.flag ? 0 : value;
			}
			end(m, value);
		}
		give_way(m);
	}
}
