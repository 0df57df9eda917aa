/* C calls that keep the GVL, for specs. */
#include <ruby.h>
#include <glob.h>
#include <time.h>

/* Takes `bytes` of memory, appends a few Strings to `array` and waits, without a safe point, until a file matches `pattern`,
   for `seconds` at most. Returns whether one did. */
static VALUE
until_there_is(VALUE self, VALUE pattern, VALUE array, VALUE seconds, VALUE bytes)
{
    /* Written to as volatile, or the compiler sees that nobody reads it. */
    volatile char *memory = ruby_xmalloc(NUM2SIZET(bytes));
    for (size_t at = 0; at < NUM2SIZET(bytes); at += 4096)
        memory[at] = 1;
    const char *path = StringValueCStr(pattern);
    long steps = NUM2LONG(seconds) * 1000;
    for (long step = 0; step < steps; step++) {
        glob_t found;
        int outcome = glob(path, 0, NULL, &found);
        if (outcome == 0) {
            globfree(&found);
            return Qtrue;
        }
        rb_ary_push(array, rb_str_new_cstr("made in C"));
        struct timespec moment = {0, 1000000};
        nanosleep(&moment, NULL);
    }
    return Qfalse;
}

void
Init_holds_gvl(void)
{
    rb_define_module_function(rb_define_module("HoldsGvl"), "until_there_is", until_there_is, 4);
}
