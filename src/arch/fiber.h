/* arch/fiber.h - what sanitizers and Valgrind must be told about stacks. Empty in ordinary builds.
 *
 * Called from the one switch function and from where stacks are made, and nowhere else. */
#ifndef ARCH_FIBER_H
#define ARCH_FIBER_H

#include <stddef.h>

#ifndef __has_feature /* clang's way to say it; gcc defines macros */
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define HD__ASAN 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define HD__TSAN 1
#include <sanitizer/tsan_interface.h>
#endif
#if defined(__has_include)
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif
#endif

/* How much address space to reserve at most, for stacks of one size. The sanitizers keep shadows of what is reserved. */
#if HD__TSAN || HD__ASAN
#define HD__REGION_MAX ((size_t)1 << 36)
#else
#define HD__REGION_MAX ((size_t)1 << 42) /* a stack of 64 or 128 KiB for every process that there can be */
#endif

struct hd__fiber {
#if HD__ASAN
	void *fake_stack;
	const void *bottom;
	size_t size;
#endif
#if HD__TSAN
	void *handle, *doomed;
#endif
	char nothing[0];
};

/* A stack that is about to be switched to for the first time. bottom NULL: the kernel thread's own stack. */
static inline void hd__fiber_init(struct hd__fiber *f, void *bottom, size_t size)
{
	(void)f, (void)bottom, (void)size;
#if HD__ASAN
	*f = (struct hd__fiber){ .bottom = bottom, .size = size };
	if (bottom != NULL)
		__asan_unpoison_memory_region(bottom, size); /* left by frames that were abandoned */
#endif
#if HD__TSAN
	*f = (struct hd__fiber){ .handle = bottom != NULL ? __tsan_create_fiber(0) : __tsan_get_current_fiber() };
#endif
}

/* On `from`, right before the jump to `to`. `last`: from will never be switched to again. */
static inline void hd__fiber_leave(struct hd__fiber *from, struct hd__fiber *to, int last)
{
	(void)from, (void)to, (void)last;
#if HD__ASAN
	__sanitizer_start_switch_fiber(last ? NULL : &from->fake_stack, to->bottom, to->size);
#endif
#if HD__TSAN
	to->doomed = last ? from->handle : NULL;
	__tsan_switch_to_fiber(to->handle, 0);
#endif
}

/* On `self`, right after it was jumped to; `thread` learns the bounds of the kernel thread's stack if the jump came from
 * there. */
static inline void hd__fiber_arrive(struct hd__fiber *self, struct hd__fiber *thread)
{
	(void)self, (void)thread;
#if HD__ASAN
	const void *bottom;
	size_t size;
	__sanitizer_finish_switch_fiber(self->fake_stack, &bottom, &size);
	if (thread != NULL && thread->bottom == NULL) {
		thread->bottom = bottom;
		thread->size = size;
	}
#endif
#if HD__TSAN
	if (self->doomed != NULL)
		__tsan_destroy_fiber(self->doomed);
	self->doomed = NULL;
#endif
}

/* As hd__fiber_arrive, for a simulated thread (sim/runtime/), which may stop on any stack: `before` learns which one it was. */
static inline void hd__fiber_arrive_from(struct hd__fiber *self, struct hd__fiber *before)
{
	(void)self, (void)before;
#if HD__ASAN
	__sanitizer_finish_switch_fiber(self->fake_stack, &before->bottom, &before->size);
#endif
}

/* A process ended without a switch from it, or its stack is thrown away. */
static inline void hd__fiber_fini(struct hd__fiber *f)
{
	(void)f;
#if HD__TSAN
	if (f->handle != NULL)
		__tsan_destroy_fiber(f->handle);
	f->handle = NULL;
#endif
}

/* Valgrind complains about system calls that it does not know. */
static inline int hd__under_valgrind(void)
{
#ifdef RUNNING_ON_VALGRIND
	return RUNNING_ON_VALGRIND;
#else
	return 0;
#endif
}

static inline void hd__fiber_new_stack(void *bottom, size_t size)
{
	(void)bottom, (void)size;
#ifdef VALGRIND_STACK_REGISTER
	(void)VALGRIND_STACK_REGISTER(bottom, (char *)bottom + size);
#endif
}

#endif
