/* C calls that keep the GVL, for specs. */
#include <ruby.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

/* What is made when the VM is gone, and what the process then waits for. */
static char *gone, *end;

static void
outlive_vm(void)
{
    close(open(gone, O_CREAT | O_WRONLY, 0600));
    struct timespec moment = {0, 1000000};
    while (access(end, F_OK) != 0)
        nanosleep(&moment, NULL);
}

/* Has the process, when it ends, make the file `gone` after the VM, and wait for the file `end`. */
static VALUE
outlive(VALUE self, VALUE gone_path, VALUE end_path)
{
    gone = strdup(StringValueCStr(gone_path));
    end = strdup(StringValueCStr(end_path));
    atexit(outlive_vm);
    return Qnil;
}

void
Init_holds_gvl(void)
{
    VALUE module = rb_define_module("HoldsGvl");
    rb_define_module_function(module, "until_there_is", until_there_is, 4);
    rb_define_module_function(module, "outlive", outlive, 2);
}
