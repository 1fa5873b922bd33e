/* rt/inside.c - the description that tools find in a program: by its note, while a runtime runs. */
#define _GNU_SOURCE
#include "rt/inside.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/process.h"
#include "life/life.h"

/* Where the notes of one object lead. */
static int look_through(struct dl_phdr_info *info, size_t size, void *arg)
{
	const struct hd__inside **found = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type != PT_NOTE)
			continue;
		const char *at = (const char *)(info->dlpi_addr + p->p_vaddr), *end = at + p->p_memsz;
		while (end - at >= (ptrdiff_t)sizeof(ElfW(Nhdr))) {
			const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)at;
			const char *name = at + sizeof *note, *contents = name + ((note->n_namesz + 3) & ~3u);
			if (note->n_namesz == sizeof HD__INSIDE_OWNER &&
			    memcmp(name, HD__INSIDE_OWNER, sizeof HD__INSIDE_OWNER) == 0) {
				const struct hd__inside_note *leads = (const struct hd__inside_note *)contents;
				int64_t offset;
				CHECK_EQ(note->n_type, HD__INSIDE_NOTE);
				CHECK_EQ(leads->version, HD__INSIDE_VERSION);
				memcpy(&offset, &leads->offset, sizeof offset);
				CHECK(*found == NULL); /* there is one */
				*found = (const struct hd__inside *)((const char *)&leads->offset + offset);
			}
			at = contents + ((note->n_descsz + 3) & ~3u);
		}
	}
	return 0;
}

static const struct hd__inside *find(void)
{
	const struct hd__inside *found = NULL;

	dl_iterate_phdr(look_through, &found);
	CHECK(found != NULL);
	return found;
}

static uint64_t number(const void *base, struct hd__inside_field f)
{
	uint64_t n = 0;

	CHECK(f.size <= sizeof n);
	memcpy(&n, (const char *)base + f.at, f.size);
	return n;
}

/* What a tool would read of the caller. */
static void *read_self(void *arg)
{
	const struct hd__inside *d = find();
	struct hd_worker *w = hd__self();

	CHECK(memcmp(d->magic, HD__INSIDE_MAGIC "\0", 16) == 0);
	CHECK_EQ(d->version, HD__INSIDE_VERSION);
	CHECK_EQ(d->size, sizeof *d);
	CHECK_EQ(d->self, (uintptr_t)d);
	CHECK_EQ(d->sched, (uintptr_t)w->sched);
	CHECK_EQ(d->fields, HD__INSIDE_FIELDS);
	CHECK_STR(d->wait[HD_WAIT_MUTEX].call, "hd_mutex_lock");
	CHECK_STR(d->wait[HD_WAIT_MUTEX].object, "mutex");
	CHECK_STR(d->wait[HD_WAIT_QUIESCE].call, "hd_quiesce");
	CHECK_EQ(d->waits, HD_WAIT_QUIESCE + 1);

	const char *sched = (const char *)(uintptr_t)d->sched;
	const char *blocks = (const char *)(uintptr_t)number(sched, d->field[HD__INSIDE_SCHED_BLOCKS]);
	const char *worker = sched + d->field[HD__INSIDE_SCHED_WORKERS].at + w->index * d->field[HD__INSIDE_SCHED_WORKERS].size;
	const char *me = (const char *)(uintptr_t)number(worker, d->field[HD__INSIDE_WORKER_CURRENT]);
	CHECK_EQ((me - blocks) % d->field[HD__INSIDE_PROCESS].size, 0);
	CHECK_EQ((me - blocks) / d->field[HD__INSIDE_PROCESS].size, hd_self() & (HD__SLOTS - 1));
	CHECK_EQ(number(me, d->field[HD__INSIDE_PROCESS_STATE]), HD_RUNNING);
	CHECK_STR(me + d->field[HD__INSIDE_PROCESS_NAME].at, "main");
	return arg;
}

HD_TEST(inside_is_found_by_its_note)
{
	const struct hd__inside *d = find();

	for (int round = 0; round < 2; round++) {
		CHECK_EQ(d->sched, 0);
		CHECK_EQ(hd_run(NULL, read_self, NULL), 0);
		CHECK_EQ(d->sched, 0);
	}
}

static void *fork_child(void *arg)
{
	const struct hd__inside *d = find();
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(d->sched == 0 ? 0 : 1); /* it has no runtime */
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
	CHECK_EQ(d->sched, (uintptr_t)hd__self()->sched);
	return arg;
}

HD_TEST(inside_of_a_forked_child_has_no_runtime)
{
	CHECK_EQ(hd_run(NULL, fork_child, NULL), 0);
}

HD_TEST(inside_is_allowed_by_the_environment)
{
	CHECK_EQ(setenv("HEDDLE_INSPECT", "1", 1), 0);
	CHECK_EQ(hd_run(&(struct hd_config){ .fixed = true }, read_self, NULL), 0);
	CHECK_EQ(setenv("HEDDLE_INSPECT", "2", 1), 0);
	CHECK_EQ(hd_run(&(struct hd_config){ .fixed = true }, read_self, NULL), -EINVAL);
}
