/* One C call that keeps the GVL, makes Strings and never comes to a safe point. */
#include <ruby.h>
#include <time.h>

static double
now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Appends Strings of `size` bytes to `array`, `rate` bytes per second. */
static VALUE
fill(VALUE self, VALUE array, VALUE size_value, VALUE rate_value)
{
    long size = NUM2LONG(size_value);
    double rate = NUM2DBL(rate_value), begun = now(), done = 0;
    for (;;) {
        while (done < (now() - begun) * rate) {
            VALUE string = rb_str_new(NULL, size);
            memset(RSTRING_PTR(string), 'x', (size_t)size);
            rb_ary_push(array, string);
            done += (double)size + 40;
        }
        struct timespec moment = {0, 200000};
        nanosleep(&moment, NULL);
    }
    return Qnil;
}

void
Init_hog(void)
{
    rb_define_module_function(rb_define_module("Hog"), "fill", fill, 3);
}
