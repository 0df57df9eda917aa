/* Counts the VM's object events with raw hooks, like the gem's, and follows the objects of one class, Strings
 * of SIZE times 'x', from birth to death. Knows nothing about the gem. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <ruby.h>
#include <ruby/debug.h>
#include <stdbool.h>
#include <stdint.h>

enum { SIZE = 100, SLOTS = 1 << 16 };

/* struct rb_trace_arg_struct of vm_core.h, as the gem reads it. */
struct event {
    rb_event_flag_t flag;
    void *context, *control_frame;
    VALUE receiver;
    ID id, called_id;
    VALUE class, object;
};

static const struct {
    const char *name;
    rb_event_flag_t flag;
} kinds[] = {
    {"newobj", RUBY_INTERNAL_EVENT_NEWOBJ},
    {"freeobj", RUBY_INTERNAL_EVENT_FREEOBJ},
    {"start", RUBY_INTERNAL_EVENT_GC_START},
    {"end_mark", RUBY_INTERNAL_EVENT_GC_END_MARK},
    {"end_sweep", RUBY_INTERNAL_EVENT_GC_END_SWEEP},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static struct {
    size_t events[KINDS];
    /* Events for which the public functions return something else; objects born without a type. */
    size_t misread, typeless;
    /* Objects freed between the beginning and the end of a mark phase. */
    size_t early;
    /* Of the followed: born; freed; freed although last seen marked; freed with changed contents. */
    size_t born, freed, unforeseen, damaged;
} counts;

/* The live followed objects, by address. */
static struct {
    VALUE object;
    bool condemned;
} table[SLOTS];

static VALUE followed;
static bool marking;
static ID marked_id;
static int (*marked_p)(VALUE);
static size_t (*gc_flags)(VALUE, ID *, size_t);
static struct metadata {
    ID name;
    VALUE value;
} *(*object_metadata)(VALUE);

static bool
is_marked(VALUE object)
{
    ID flags[8];

    if (marked_p) return marked_p(object);
    if (gc_flags) {
        size_t count = gc_flags(object, flags, 8);
        for (size_t i = 0; i < count; i++) {
            if (flags[i] == marked_id) return true;
        }
        return false;
    }
    for (struct metadata *entry = object_metadata(object); entry->name; entry++) {
        if (entry->name == marked_id) return RTEST(entry->value);
    }
    return false;
}

/* The slot of an object, or the free one where it belongs. Slots of dead objects remain, with another address. */
static size_t
slot_of(VALUE object)
{
    size_t slot = (object >> 3) * 0x9e3779b97f4a7c15u >> 48;
    while (table[slot].object && table[slot].object != object) slot = (slot + 1) % SLOTS;
    return slot;
}

static bool
is_followed(VALUE object)
{
    return followed && RB_BUILTIN_TYPE(object) == RUBY_T_STRING && RBASIC_CLASS(object) == followed;
}

static void
on_newobj(VALUE object)
{
    if (RB_BUILTIN_TYPE(object) == RUBY_T_NONE) counts.typeless++;
    /* More would fill the table, in which dead objects have slots, too. */
    if (!is_followed(object) || counts.born == SLOTS / 2) return;
    counts.born++;
    table[slot_of(object)].object = object;
}

static void
on_freeobj(VALUE object)
{
    if (marking) counts.early++;
    if (!is_followed(object)) return;
    size_t slot = slot_of(object);
    if (!table[slot].object) return;
    counts.freed++;
    if (!table[slot].condemned) counts.unforeseen++;
    bool intact = RSTRING_LEN(object) == SIZE;
    for (int i = 0; intact && i < SIZE; i++) intact = RSTRING_PTR(object)[i] == 'x';
    if (!intact) counts.damaged++;
    table[slot].object = 1;
    table[slot].condemned = false;
}

static void
on_end_mark(void)
{
    for (size_t i = 0; i < SLOTS; i++) {
        if (table[i].object > 1 && !is_marked(table[i].object)) table[i].condemned = true;
    }
}

static void
on_event(VALUE data, struct event *event)
{
    for (int i = 0; i < KINDS; i++) {
        if (event->flag == kinds[i].flag) counts.events[i]++;
    }
    if (event->flag & (RUBY_INTERNAL_EVENT_NEWOBJ | RUBY_INTERNAL_EVENT_FREEOBJ)) {
        rb_trace_arg_t *arg = (rb_trace_arg_t *)event;
        if (rb_tracearg_object(arg) != event->object || rb_tracearg_event_flag(arg) != event->flag) counts.misread++;
    }
    switch (event->flag) {
      case RUBY_INTERNAL_EVENT_NEWOBJ: on_newobj(event->object); break;
      case RUBY_INTERNAL_EVENT_FREEOBJ: on_freeobj(event->object); break;
      case RUBY_INTERNAL_EVENT_GC_START: marking = true; break;
      case RUBY_INTERNAL_EVENT_GC_END_MARK: marking = false; on_end_mark(); break;
    }
}

/* VmEvents.watch(*kinds), in addition to those already watched. */
static VALUE
watch(int argc, VALUE *argv, VALUE self)
{
    rb_event_flag_t flags = 0;

    for (int i = 0; i < argc; i++) {
        for (int k = 0; k < KINDS; k++) {
            if (rb_sym2id(argv[i]) == rb_intern(kinds[k].name)) flags |= kinds[k].flag;
        }
    }
    rb_add_event_hook2((rb_event_hook_func_t)(void *)on_event, flags, Qnil,
                       RUBY_EVENT_HOOK_FLAG_SAFE | RUBY_EVENT_HOOK_FLAG_RAW_ARG);
    return Qnil;
}

/* VmEvents.unwatch: nothing is watched any more. */
static VALUE
unwatch(VALUE self)
{
    rb_remove_event_hook((rb_event_hook_func_t)(void *)on_event);
    return Qnil;
}

/* VmEvents.follow(subclass of String) */
static VALUE
follow(VALUE self, VALUE class)
{
    followed = class;
    rb_gc_register_mark_object(class);
    return Qnil;
}

/* VmEvents.unprotect(object): what RARRAY_PTR and the like do to make an object writable without write barriers. */
static VALUE
unprotect(VALUE self, VALUE object)
{
    rb_gc_writebarrier_unprotect(object);
    return Qnil;
}

/* VmEvents.counts => Hash */
static VALUE
get_counts(VALUE self)
{
    /* Creating the Hash must not count. */
    __typeof__(counts) now = counts;
    size_t condemned = 0;
    VALUE hash = rb_hash_new();

    for (size_t i = 0; i < SLOTS; i++) condemned += table[i].condemned;
#define SET(name, value) rb_hash_aset(hash, ID2SYM(rb_intern(name)), SIZET2NUM(value))
    for (int i = 0; i < KINDS; i++) SET(kinds[i].name, now.events[i]);
    SET("misread", now.misread);
    SET("typeless", now.typeless);
    SET("early", now.early);
    SET("born", now.born);
    SET("freed", now.freed);
    SET("unforeseen", now.unforeseen);
    SET("damaged", now.damaged);
    /* Those not marked and not freed yet. */
    SET("condemned", condemned);
    return hash;
}

void
Init_vm_events(void)
{
    VALUE module = rb_define_module("VmEvents");

    marked_id = rb_intern("marked");
    *(void **)&marked_p = dlsym(RTLD_DEFAULT, "rb_objspace_marked_object_p");
    *(void **)&gc_flags = dlsym(RTLD_DEFAULT, "rb_obj_gc_flags");
    *(void **)&object_metadata = dlsym(RTLD_DEFAULT, "rb_gc_object_metadata");
    /* The first call allocates. */
    is_marked(module);
    rb_define_module_function(module, "watch", watch, -1);
    rb_define_module_function(module, "unwatch", unwatch, 0);
    rb_define_module_function(module, "follow", follow, 1);
    rb_define_module_function(module, "unprotect", unprotect, 1);
    rb_define_module_function(module, "counts", get_counts, 0);
}
