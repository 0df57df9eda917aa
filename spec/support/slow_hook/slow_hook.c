/* A hook on thread events that once takes long, with the VM's lock on such hooks, for specs. Ruby 3.2 and later. */
#include <ruby.h>
#include <ruby/thread.h>
#include <unistd.h>

static volatile int armed, inside;

static void
on_ready(rb_event_flag_t event, const rb_internal_thread_event_data_t *data, void *unused)
{
    if (!armed)
        return;
    armed = 0;
    inside = 1;
    usleep(300000);
}

/* Returns as soon as another thread is in the hook, in which it stays for a while. One must become ready. */
static VALUE
enter(VALUE self)
{
    armed = 1;
    while (!inside)
        usleep(100);
    return Qnil;
}

void
Init_slow_hook(void)
{
    rb_internal_thread_add_event_hook(on_ready, RUBY_INTERNAL_THREAD_EVENT_READY, NULL);
    rb_define_module_function(rb_define_module("SlowHook"), "enter", enter, 0);
}
