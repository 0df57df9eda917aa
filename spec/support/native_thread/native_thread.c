/* A native thread that Ruby does not know, for specs. */
#define _GNU_SOURCE
#include <ruby.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

static double wanted;
static volatile int state;

static void *
spin(void *unused)
{
    struct timespec used;
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    while (used.tv_sec + used.tv_nsec / 1e9 < wanted);
    state = 1;
    for (;;)
        pause();
    return NULL;
}

/* Uses so many seconds of CPU time in a thread named spinner, and yields again and again until it has. The thread lives as
   long as the process, so that its time can be read afterwards. */
static VALUE
start(VALUE self, VALUE seconds)
{
    pthread_t thread;
    wanted = NUM2DBL(seconds);
    state = 0;
    if (pthread_create(&thread, NULL, spin, NULL) != 0)
        rb_sys_fail("pthread_create");
    pthread_setname_np(thread, "spinner");
    pthread_detach(thread);
    while (state == 0)
        rb_yield(Qnil);
    return Qnil;
}

void
Init_native_thread(void)
{
    rb_define_module_function(rb_define_module("NativeThread"), "spin", start, 1);
}
