/* Two other ways to sample CPU time, for comparison:
 *
 * handler: ITIMER_PROF, whose signal goes to some thread that runs; rb_profile_frames in the handler. A sample is a period.
 * wall: a thread ticks on the clock of the wall; at the next safe point the thread that is there is charged the CPU time
 *       that it has used since it was last asked.
 *
 * Frames are kept as they are: the measured methods live as long as the process. */
#define _GNU_SOURCE
#include <ruby.h>
#include <ruby/debug.h>
#include <ruby/thread.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/time.h>
#include <time.h>

#define DEPTH 64
#define MOST 200000

int ruby_thread_has_gvl_p(void);

typedef struct {
    int64_t weight;
    int depth;
    VALUE frames[DEPTH];
} sample_t;

static sample_t *samples;
static atomic_size_t count;
static int64_t period;
static atomic_int ticking;
static pthread_t ticker;
static __thread int64_t asked;
static __thread int known;

static int64_t
thread_cpu(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void
record(int64_t weight)
{
    size_t number = atomic_fetch_add(&count, 1);
    if (number >= MOST)
        return;
    samples[number].weight = weight;
    samples[number].depth = rb_profile_frames(0, DEPTH, samples[number].frames, NULL);
}

static void
on_signal(int signal)
{
    int error = errno;
    if (ruby_thread_has_gvl_p())
        record(period);
    errno = error;
}

static void
job(void *unused)
{
    int64_t now = thread_cpu();
    if (known && ticking)
        record(now - asked);
    known = 1;
    asked = now;
}

#ifdef HAVE_RB_POSTPONED_JOB_PREREGISTER
static rb_postponed_job_handle_t handle;
#define TRIGGER() rb_postponed_job_trigger(handle)
#else
#define TRIGGER() rb_postponed_job_register_one(0, job, NULL)
#endif

static void *
tick(void *unused)
{
    while (ticking) {
        nanosleep(&(struct timespec){0, period}, NULL);
        TRIGGER();
    }
    return NULL;
}

static void
begin(VALUE nanoseconds)
{
    period = NUM2LL(nanoseconds);
    if (samples == NULL)
        samples = calloc(MOST, sizeof *samples);
    count = 0;
}

static VALUE
start_handler(VALUE self, VALUE nanoseconds)
{
    begin(nanoseconds);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK};
    sigaction(SIGPROF, &action, NULL);
    struct timeval interval = {0, period / 1000};
    setitimer(ITIMER_PROF, &(struct itimerval){interval, interval}, NULL);
    return Qnil;
}

static VALUE
start_wall(VALUE self, VALUE nanoseconds)
{
    begin(nanoseconds);
    ticking = 1;
    pthread_create(&ticker, NULL, tick, NULL);
    return Qnil;
}

/* [weight, names of frames, innermost first] for each sample. */
static VALUE
finish(VALUE self)
{
    setitimer(ITIMER_PROF, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    if (ticking) {
        ticking = 0;
        pthread_join(ticker, NULL);
    }
    VALUE result = rb_ary_new();
    size_t total = count < MOST ? count : MOST;
    for (size_t number = 0; number < total; number++) {
        VALUE names = rb_ary_new();
        for (int frame = 0; frame < samples[number].depth; frame++)
            rb_ary_push(names, rb_profile_frame_full_label(samples[number].frames[frame]));
        rb_ary_push(result, rb_ary_new_from_args(2, LL2NUM(samples[number].weight), names));
    }
    return result;
}

void
Init_other_samplers(void)
{
#ifdef HAVE_RB_POSTPONED_JOB_PREREGISTER
    handle = rb_postponed_job_preregister(0, job, NULL);
#endif
    VALUE module = rb_define_module("OtherSamplers");
    rb_define_module_function(module, "start_handler", start_handler, 1);
    rb_define_module_function(module, "start_wall", start_wall, 1);
    rb_define_module_function(module, "finish", finish, 0);
}
