/* Extension objects whose `dsize` functions, which should return their memory size, do what they must not do. */

#include <ruby.h>
#include <ruby/thread.h>
#include <stdint.h>

/* How often Ruby has asked for the size of such an object. */
static size_t calls;

static size_t
allocating_size(const void *data)
{
    calls++;
    for (int i = 0; i < 200; i++) {
        rb_ary_push(rb_ary_new(), rb_str_new_cstr("allocated while the size was asked for"));
    }
    return 1000;
}

static size_t
raising_size(const void *data)
{
    calls++;
    rb_raise(rb_eRuntimeError, "nobody knows how big this is");
}

static size_t
switching_size(const void *data)
{
    calls++;
    rb_thread_schedule();
    return 1000;
}

static size_t
collecting_size(const void *data)
{
    calls++;
    rb_gc_start();
    return 1000;
}

/* Flushes the collector in $collector. */
static size_t
flushing_size(const void *data)
{
    calls++;
    rb_funcall(rb_gv_get("$collector"), rb_intern("flush"), 0);
    return 1000;
}

/* More than half of what an int64_t holds. */
static size_t
huge_size(const void *data)
{
    calls++;
    return (size_t)INT64_MAX / 3 * 2;
}

/* Marks whatever happens to lie on the C stack. */
static void
marks_anything(void *data)
{
    volatile VALUE words[64];
    for (int i = 0; i < 64; i++) {
        rb_gc_mark_maybe(words[i]);
    }
}

static size_t
plain_size(const void *data)
{
    return 1000;
}

#define HOSTILE(name, function) HOSTILE_TYPE(name, function, NULL, RUBY_TYPED_FREE_IMMEDIATELY)

#define HOSTILE_TYPE(name, function, mark, flags) \
    static const rb_data_type_t name##_type = { \
        "hostile/" #name, { mark, RUBY_DEFAULT_FREE, function }, NULL, NULL, flags \
    }; \
    static VALUE \
    name##_allocate(VALUE klass) \
    { \
        char *data; \
        return TypedData_Make_Struct(klass, char, &name##_type, data); \
    }

HOSTILE(allocating, allocating_size)
HOSTILE(raising, raising_size)
HOSTILE(switching, switching_size)
HOSTILE(collecting, collecting_size)
HOSTILE(flushing, flushing_size)
HOSTILE(huge, huge_size)
HOSTILE_TYPE(marking, plain_size, marks_anything, RUBY_TYPED_FREE_IMMEDIATELY)
/* Stays a zombie for a while after its death. */
HOSTILE_TYPE(deferred, plain_size, NULL, 0)

/* Hostile.calls */
static VALUE
get_calls(VALUE self)
{
    return SIZET2NUM(calls);
}

void
Init_hostile(void)
{
    VALUE module = rb_define_module("Hostile");
    rb_define_module_function(module, "calls", get_calls, 0);
    rb_define_alloc_func(rb_define_class_under(module, "Allocating", rb_cObject), allocating_allocate);
    rb_define_alloc_func(rb_define_class_under(module, "Raising", rb_cObject), raising_allocate);
    rb_define_alloc_func(rb_define_class_under(module, "Switching", rb_cObject), switching_allocate);
    rb_define_alloc_func(rb_define_class_under(module, "Collecting", rb_cObject), collecting_allocate);
    rb_define_alloc_func(rb_define_class_under(module, "Flushing", rb_cObject), flushing_allocate);
    rb_define_alloc_func(rb_define_class_under(module, "Huge", rb_cObject), huge_allocate);
    rb_define_alloc_func(rb_define_class_under(module, "Marking", rb_cObject), marking_allocate);
    rb_define_alloc_func(rb_define_class_under(module, "Deferred", rb_cObject), deferred_allocate);
}
