/* A hook on thread events that once takes long, with the VM's lock on such hooks, for specs. Ruby 3.3 and later. */
#include <ruby.h>
#include <ruby/thread.h>
#include <unistd.h>

static volatile int armed, inside;
static VALUE waiter;

static void
on_ready(rb_event_flag_t event, const rb_internal_thread_event_data_t *data, void *unused)
{
    if (!armed || data->thread == waiter)
        return;
    armed = 0;
    inside = 1;
    usleep(300000);
}

/* Returns as soon as the hook runs for another thread, which takes a while. One must become ready. It may be ready
 * already, so this one yields to it now and then, but not while the hook may run: the VM calls it under a lock that
 * yielding takes. */
static VALUE
enter(VALUE self)
{
    waiter = rb_thread_current();
    for (;;) {
        armed = 1;
        for (int spun = 0; spun < 1000; spun++) {
            if (inside)
                return Qnil;
            usleep(100);
        }
        armed = 0;
        rb_thread_schedule();
    }
}

void
Init_slow_hook(void)
{
    rb_internal_thread_add_event_hook(on_ready, RUBY_INTERNAL_THREAD_EVENT_READY, NULL);
    rb_define_module_function(rb_define_module("SlowHook"), "enter", enter, 0);
}
