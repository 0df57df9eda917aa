/* Hooks that do nothing, to measure what the VM's own calling of hooks costs. */
#include <ruby.h>
#include <ruby/debug.h>

static void
empty_raw_hook(VALUE data, const rb_trace_arg_t *arg)
{
}

static void
empty_tracepoint(VALUE tracepoint, void *data)
{
}

static void
add_raw_hook(rb_event_flag_t event)
{
    rb_add_event_hook2((rb_event_hook_func_t)empty_raw_hook, event, Qnil,
                       RUBY_EVENT_HOOK_FLAG_SAFE | RUBY_EVENT_HOOK_FLAG_RAW_ARG);
}

static void
enable_tracepoint(rb_event_flag_t event)
{
    VALUE tracepoint = rb_tracepoint_new(Qnil, event, empty_tracepoint, NULL);

    rb_gc_register_mark_object(tracepoint);
    rb_tracepoint_enable(tracepoint);
}

static VALUE
raw_newobj(VALUE self)
{
    add_raw_hook(RUBY_INTERNAL_EVENT_NEWOBJ);
    return Qnil;
}

static VALUE
raw_off(VALUE self)
{
    rb_remove_event_hook((rb_event_hook_func_t)empty_raw_hook);
    return Qnil;
}

static VALUE
raw_pair(VALUE self)
{
    add_raw_hook(RUBY_INTERNAL_EVENT_NEWOBJ);
    add_raw_hook(RUBY_INTERNAL_EVENT_FREEOBJ);
    return Qnil;
}

static VALUE
tracepoints(VALUE self)
{
    enable_tracepoint(RUBY_INTERNAL_EVENT_NEWOBJ);
    enable_tracepoint(RUBY_INTERNAL_EVENT_FREEOBJ);
    return Qnil;
}

void
Init_empty_hooks(void)
{
    VALUE module = rb_define_module("EmptyHooks");

    rb_define_singleton_method(module, "raw_newobj", raw_newobj, 0);
    rb_define_singleton_method(module, "raw_off", raw_off, 0);
    rb_define_singleton_method(module, "raw_pair", raw_pair, 0);
    rb_define_singleton_method(module, "tracepoints", tracepoints, 0);
}
