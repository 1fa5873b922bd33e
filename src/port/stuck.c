/* port/stuck.c - processes that wait for messages which no process can send.
 *
 * Owns:       one search; nothing of it lasts.
 * Invariant:  a suspect waits for messages alone, without a deadline, and the references to the ports for which it waits are its own, or are
 *             carried by messages in the mailboxes of suspects. As long as no suspect runs, such a reference goes to no other process: so
 *             none can wake one of them. Trial deletion finds the largest such set: all that wait so are suspected, and one is cleared
 *             when there is another reference to one of its ports; the references that its messages carry are others' from then on.
 *             The suspects that are left are looked at again. All that was seen is there still, and none has run: so all of it was there at
 *             once. (Messages to a suspect come meanwhile, perhaps, but none goes: so a look that has found as many as the first has
 *             found the same. Not so in a port that drops its oldest message: what is carried there is another's.)
 * Locking:    a process is looked at under the lock of its news, which keeps its mailbox, and that mailbox's, without which it does not go
 *             on. No two mailboxes at a time, and no memory is fetched meanwhile.
 * Callers:    any thread, inside no lane. */
#include "os/memory.h"
#include "port/port.h"

/* A port for which a suspect waits. */
struct awaited {
	const hd_port *port;
	size_t suspect;
	uint32_t refs;	 /* without its owner's */
	uint32_t others; /* of these, those that no suspect's message carries */
};

struct suspect {
	struct hd_process *process;
	hd_pid pid;
	hd_time since;
	uint64_t switches;
	size_t port, ports;	 /* its first one in search.ports, and how many */
	size_t carried, carries; /* likewise in search.carried: what its messages carry */
	bool cleared;
};

struct search {
	struct hd__sched *sched;
	struct suspect *suspects;
	struct awaited *ports;
	const hd_port **carried; /* compared, and not looked into */
	size_t nsuspects, nports, ncarried;
	size_t room_for_suspects, room_for_ports, room_for_carried;
	size_t *buckets; /* of a table with open addressing: index in `ports`, plus 1; 0: none */
	size_t mask;	 /* how many there are, less 1 */
	size_t *pending; /* suspects that were cleared, and whose messages are to be looked at */
	size_t npending;
};

/* ---- what is seen of a process ---- */

/* Under the lock: the ports that are carried by messages in the mailbox, to `into` unless that is NULL; how many. */
static size_t find_carried(const struct hd__mailbox *box, const hd_port **into)
{
	const struct hd__line *const lines[] = { &box->arrived[HD__URGENT], &box->arrived[HD__PLAIN], &box->held };
	size_t n = 0;

	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
		for (struct hd__link *x = hd__line_first(lines[i]); x != NULL; x = hd__line_after(lines[i], x)) {
			const struct hd__letter *l = hd__in_box(x);
			const hd_port *carried = l->kind != HD__BARE ? ld_rlx(&l->carried) : NULL;
			const hd_port *in = lines[i] != &box->held ? l->port : NULL;
			if (carried == NULL || ld_acq(&l->emptied) ||
			    (in != NULL && in->limits != NULL && in->limits->full == HD_FULL_DROP_OLD))
				continue;
			if (into != NULL)
				into[n] = carried;
			n++;
		}
	return n;
}

static const hd_port *port_of_case(const struct hd_waiter *x)
{
	return ((const struct hd_case *)(const void *)((const char *)x - offsetof(struct hd_case, record)))->object;
}

/* Under the lock: whether p, whose record is x, waits in several queues for messages alone; *all: to any of its ports. */
static bool selects_messages(struct hd_process *p, bool *all)
{
	if (!hd__is_off_stack(p)) /* else it has joined all its queues */
		return false;
	for (const struct hd_waiter *x = p->inner->records; x != NULL; x = x->sibling) {
		if (x->why != HD_WAIT_RECEIVE)
			return false;
		*all |= port_of_case(x) == NULL;
	}
	return true;
}

/* Under the lock: the i-th awaited port is this one. */
static size_t put_port(struct awaited *into, size_t i, const hd_port *port)
{
	uint32_t refs = ld_rlx(&port->head.refs);

	if (into != NULL)
		into[i] = (struct awaited){ .port = port, .refs = refs - (port->head.owners && refs > 0) };
	return i + 1;
}

static bool is_among(const struct awaited *ports, size_t n, const hd_port *port)
{
	for (size_t i = 0; ports != NULL && i < n; i++)
		if (ports[i].port == port)
			return true;
	return false;
}

/* Under the lock: the ports for which the owner, whose record is x, waits, to `into` unless that is NULL; how many, and with NULL perhaps too
 * many: hd_select may have a port twice. */
static size_t find_ports(struct hd__mailbox *box, const struct hd_waiter *x, bool all, struct awaited *into)
{
	size_t n = 0;

	if (all)
		for (hd_port *port = NULL; (port = hd__port_after(box, port)) != NULL;)
			n = put_port(into, n, port);
	else if (!x->several)
		n = put_port(into, n, ((const struct hd__receiver *)x)->port);
	else
		for (const struct hd_waiter *y = x->process->inner->records; y != NULL; y = y->sibling)
			if (!is_among(into, n, port_of_case(y)))
				n = put_port(into, n, port_of_case(y));
	return n;
}

enum seen { NO_SUSPECT, SUSPECT, NO_ROOM };

/* Under the lock of the mailbox of p, which is alive: whether p waits for messages alone, without a deadline, and nothing was asked of it that ends
 * its wait. What it has is put behind what is in the search, if there is room. */
static enum seen look_into(struct search *s, struct hd_process *p, struct hd__mailbox *box, struct suspect *found)
{
	const struct hd__receiver asleep = { .waiter = { .why = HD_WAIT_RECEIVE }, /* of a machine, which has no record */
					     .port = (hd_port *)(uintptr_t)ld_rlx(&p->arrival) };
	const struct hd_waiter *x = box->sleeper ? &asleep.waiter : box->receiver.head;
	bool all = false;

	if (x == NULL || x->why != HD_WAIT_RECEIVE || ld_acq(&p->wait) != HD__WAITING ||
	    ld_acq(&p->control) & (HD__DOOMED | HD__CANCEL))
		return NO_SUSPECT;
	if (!x->several)
		all = ((const struct hd__receiver *)x)->port == NULL;
	else if (!selects_messages(p, &all))
		return NO_SUSPECT;
	size_t ports = find_ports(box, x, all, NULL), carries = find_carried(box, NULL);
	*found = (struct suspect){ .process = p,
				   .since = ld_rlx(&p->since),
				   .switches = ld_rlx(&p->switches),
				   .port = s->nports,
				   .ports = ports,
				   .carried = s->ncarried,
				   .carries = carries };
	if (ports > s->room_for_ports - s->nports || carries > s->room_for_carried - s->ncarried)
		return NO_ROOM;
	found->ports = find_ports(box, x, all, s->ports + s->nports);
	for (size_t i = 0; i < found->ports; i++)
		if (hd__has_afters(s->ports[s->nports + i].port))
			return NO_SUSPECT;
	find_carried(box, s->carried + s->ncarried);
	return SUSPECT;
}

static enum seen look_at(struct search *s, struct hd_process *p, hd_pid pid, struct suspect *found)
{
	enum seen seen = NO_SUSPECT;

	if (ld_rlx(&p->state) != HD_WAITING || (ld_rlx(&p->why) != HD_WAIT_RECEIVE && ld_rlx(&p->why) != HD_WAIT_SELECT))
		return NO_SUSPECT;
	hd__waitq_lock(&p->news);
	struct hd__mailbox *box = hd__alive(ld_acq(&p->control), pid) ? hd__mailbox_of(p) : NULL;
	struct hd__more *more = box != NULL ? ld_acq(&box->more) : NULL;
	if (box != NULL && (more == NULL || ld_rlx(&more->links) == 0)) { /* else the end of another process would end p, too */
		hd__mailbox_lock(box);
		seen = look_into(s, p, box, found);
		hd__mailbox_unlock(box);
	}
	hd__waitq_unlock(&p->news);
	found->pid = pid;
	return seen;
}

/* ---- the search ---- */

static bool grow(void *array, size_t size, size_t *room, size_t need)
{
	size_t more = *room < 16 ? 16 : *room;
	void *old = *(void **)array, *grown;

	if (need <= *room)
		return true;
	while (more < need)
		more *= 2;
	grown = hd__os_realloc(old, more * size);
	if (grown == NULL)
		return false;
	*(void **)array = grown;
	*room = more;
	return true;
}

/* As look_at, with room for what is found. Answers NO_ROOM if there is no memory. */
static enum seen look_with_room(struct search *s, struct hd_process *p, hd_pid pid, struct suspect *found)
{
	enum seen seen;

	while ((seen = look_at(s, p, pid, found)) == NO_ROOM)
		if (!grow(&s->ports, sizeof *s->ports, &s->room_for_ports, s->nports + found->ports) ||
		    !grow(&s->carried, sizeof *s->carried, &s->room_for_carried, s->ncarried + found->carries))
			return NO_ROOM;
	return seen;
}

/* All that wait so are suspects at first. False: no memory. */
static bool find_suspects(struct search *s, bool pass)
{
	for (uint32_t slot = 0; slot < ld_acq(&s->sched->table.made); slot++) {
		struct hd_process *p = &s->sched->table.blocks[slot];
		struct suspect found;
		if (ld_acq(&p->control) & HD__DEAD)
			continue;
		if (pass)
			hd__pass_by();
		if (!grow(&s->suspects, sizeof *s->suspects, &s->room_for_suspects, s->nsuspects + 1))
			return false;
		enum seen seen = look_with_room(s, p, hd__pid(&s->sched->table, p), &found);
		if (seen == NO_ROOM)
			return false;
		if (seen == NO_SUSPECT)
			continue;
		for (size_t i = 0; i < found.ports; i++)
			s->ports[s->nports + i].suspect = s->nsuspects;
		s->suspects[s->nsuspects++] = found;
		s->nports += found.ports;
		s->ncarried += found.carries;
	}
	return true;
}

/* ---- trial deletion ---- */

static size_t *bucket_of(const struct search *s, const hd_port *port)
{
	size_t i = (size_t)((uint64_t)(uintptr_t)port * UINT64_C(0x9E3779B97F4A7C15) >> 20);

	while (s->buckets[i & s->mask] != 0 && s->ports[s->buckets[i & s->mask] - 1].port != port)
		i++;
	return &s->buckets[i & s->mask];
}

static struct awaited *find_awaited(const struct search *s, const hd_port *port)
{
	size_t found = *bucket_of(s, port);
	return found != 0 ? &s->ports[found - 1] : NULL;
}

static bool make_table(struct search *s)
{
	for (s->mask = 15; s->mask < 2 * s->nports; s->mask = 2 * s->mask + 1)
		;
	s->buckets = hd__os_alloc((s->mask + 1) * sizeof *s->buckets);
	s->pending = hd__os_alloc((s->nsuspects + 1) * sizeof *s->pending);
	if (s->buckets == NULL || s->pending == NULL)
		return false;
	for (size_t i = 0; i < s->nports; i++)
		*bucket_of(s, s->ports[i].port) = i + 1;
	return true;
}

static void clear(struct search *s, size_t i)
{
	if (s->suspects[i].cleared)
		return;
	s->suspects[i].cleared = true;
	s->pending[s->npending++] = i;
}

/* What the messages of processes that were cleared carry, a process can have that may run. */
static void clear_others(struct search *s)
{
	while (s->npending > 0) {
		const struct suspect *x = &s->suspects[s->pending[--s->npending]];
		for (size_t k = 0; k < x->carries; k++) {
			struct awaited *port = find_awaited(s, s->carried[x->carried + k]);
			if (port == NULL)
				continue;
			port->others++;
			clear(s, port->suspect);
		}
	}
}

static void clear_by_references(struct search *s)
{
	for (size_t i = 0; i < s->nports; i++)
		s->ports[i].others = s->ports[i].refs;
	for (size_t i = 0; i < s->ncarried; i++) {
		struct awaited *port = find_awaited(s, s->carried[i]);
		if (port != NULL)
			port->others--; /* below 0 when a message came between two looks: the second one will tell */
	}
	for (size_t i = 0; i < s->nports; i++)
		if (s->ports[i].others != 0)
			clear(s, s->ports[i].suspect);
	clear_others(s);
}

/* Looks at the i-th again; the arrays have what was found behind their ends. */
static bool is_unchanged(struct search *s, size_t i)
{
	struct suspect again, *x = &s->suspects[i];

	if (look_with_room(s, x->process, x->pid, &again) != SUSPECT || again.switches != x->switches ||
	    again.ports != x->ports || again.carries != x->carries)
		return false;
	for (size_t k = 0; k < x->ports; k++)
		if (s->ports[again.port + k].port != s->ports[x->port + k].port ||
		    s->ports[again.port + k].refs != s->ports[x->port + k].refs)
			return false;
	for (size_t k = 0; k < x->carries; k++)
		if (s->carried[again.carried + k] != s->carried[x->carried + k])
			return false;
	return true;
}

static void clear_changed(struct search *s, bool pass)
{
	for (size_t i = 0; i < s->nsuspects; i++) {
		if (s->suspects[i].cleared)
			continue;
		if (pass)
			hd__pass_by();
		if (!is_unchanged(s, i))
			clear(s, i);
	}
	clear_others(s);
}

static int tell(const struct search *s, int (*fn)(const struct hd_suspect *s, void *arg), void *arg)
{
	int answer = 0;

	for (size_t i = 0; i < s->nsuspects && answer == 0; i++) {
		const struct suspect *x = &s->suspects[i];
		struct hd_suspect suspect = { .pid = x->pid, .since = x->since, .ports = x->ports };
		for (size_t k = 0; k < x->ports; k++)
			suspect.references += s->ports[x->port + k].refs;
		if (!x->cleared)
			answer = fn(&suspect, arg);
	}
	return answer;
}

int hd__each_suspect(struct hd__sched *sched, bool pass, int (*fn)(const struct hd_suspect *s, void *arg), void *arg)
{
	struct search s = { .sched = sched };
	int answer = -ENOMEM;

	if (find_suspects(&s, pass) && make_table(&s)) {
		clear_by_references(&s);
		clear_changed(&s, pass);
		answer = tell(&s, fn, arg);
	}
	hd__os_free(s.suspects);
	hd__os_free(s.ports);
	hd__os_free(s.carried);
	hd__os_free(s.buckets);
	hd__os_free(s.pending);
	return answer;
}

int hd_stuck(int (*fn)(const struct hd_suspect *s, void *arg), void *arg)
{
	struct hd__sched *sched = hd__look_begin();

	if (sched == NULL)
		return -ENXIO;
	int answer = hd__each_suspect(sched, true, fn, arg);
	hd__look_end();
	return answer;
}
