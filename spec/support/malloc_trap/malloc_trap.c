/*
 * Preloaded, counts what the VM does with malloc while the trap is set: calls that do not come from the library that set
 * it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void __libc_free(void *);

static void *library;
static unsigned long calls;
static __thread int counting;

static void *library_of(void *address)
{
    Dl_info info;
    return dladdr(address, &info) ? info.dli_fbase : NULL;
}

static void count(void *caller)
{
    if (!counting) return;
    counting = 0;
    if (library_of(caller) != library) calls++;
    counting = 1;
}

void *malloc(size_t size) { count(__builtin_return_address(0)); return __libc_malloc(size); }
void *calloc(size_t number, size_t size) { count(__builtin_return_address(0)); return __libc_calloc(number, size); }
void *realloc(void *old, size_t size) { count(__builtin_return_address(0)); return __libc_realloc(old, size); }
void free(void *old) { if (old) count(__builtin_return_address(0)); __libc_free(old); }

/* Sets or releases the trap of this thread, and returns how many calls it has counted. */
unsigned long memprofiler_malloc_trap(int on)
{
    library = library_of(__builtin_return_address(0));
    counting = on;
    return calls;
}

void Init_malloc_trap(void) {}
