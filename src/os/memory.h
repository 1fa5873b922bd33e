/* os/memory.h - the only door to memory: small pieces from malloc, regions from the kernel. */
#ifndef OS_MEMORY_H
#define OS_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Bytes in a page. A constant of the machine, read before anything else. */
extern size_t hd__page_size;
#define HD__PAGE_SIZE hd__page_size

/* Zeroed memory, or NULL. */
void *hd__os_alloc(size_t size);
void *hd__os_realloc(void *p, size_t size);
void hd__os_free(void *p);

/* How much address space the program may have (ulimit -v); SIZE_MAX when there is no limit. A caller that reserves for later
 * takes a share of it, not all. */
size_t hd__os_address_space(void);

/* Address space that costs nothing until it is touched; NULL when there is none. `huge` asks for huge pages, of which the
 * region's start is then a multiple; without it the kernel is told to keep to small ones. */
void *hd__os_reserve(size_t size, int huge);
void hd__os_unreserve(void *base, size_t size);

/* A region of which little is used, as a rule: a core file has none of it, but for what hd__os_dump names, whole pages. Without that a core file
 * would be as long as all that was reserved. */
void hd__os_dump_not(void *base, size_t size);
void hd__os_dump(void *base, size_t size);

/* As hd__os_dump_not, for what fills from its beginning, and seldom much of it: a core file has the first megabyte. */
void hd__os_dump_first(void *base, size_t size);

/* How guards are made. INSTALL (Linux 6.13 and later) costs no mapping; PROTECT splits one in two at each guard, and the
 * kernel allows some 65,530 of those (vm.max_map_count): about 31,700 stacks. */
enum hd__guarding { HD__GUARD_UNKNOWN, HD__GUARD_INSTALL, HD__GUARD_PROTECT };

/* Makes `size` bytes, whole pages, at each of the n addresses `first + i * stride` fault when touched, for good. Returns 0 or -ENOMEM;
 * then some of them may be guarded already, which does no harm to try again. `how` is decided at the first call. */
int hd__os_guard(char *first, size_t size, size_t stride, size_t n, enum hd__guarding *how);

/* How many guards of the kind PROTECT there may be, so that the program has some mappings left for itself. */
uint32_t hd__os_protect_max(void);

/* Gives the memory of n pieces back; they read as zeros when next touched. */
struct hd__piece {
	void *base;
	size_t size;
};
void hd__os_discard(const struct hd__piece *pieces, size_t n);

/* Copies n bytes from where there may be no memory any more. Returns whether there was. */
int hd__os_peek(void *to, const void *from, size_t n);

/* The lowest address in [base, base + size) that has memory behind it; base + size when none has. */
char *hd__os_lowest_resident(char *base, size_t size);

#endif
