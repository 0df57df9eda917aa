//! The CPU time that a program's threads use while they have the lock that only one of them can have, the GVL.

use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

/// A thread that takes the GVL back within this many nanoseconds of real time, with nobody having had it in between,
/// is taken to have kept it.
const SHORT: u64 = 20_000;

/// How many nanoseconds of real time after its CPU clock was read a thread can give up the GVL without that being read
/// again.
const RECENT: u64 = 500_000;

/// No time. Of a thread's CPU clock: it is not known when its thread got the GVL; of the real time at which that has
/// given it up: it has not.
const NONE: u64 = u64::MAX;

/// The clocks that the calling thread can read. All times are in nanoseconds.
pub trait Clocks {
    /// The number by which [`cpu_of`](Self::cpu_of) knows the calling thread.
    fn id(&self) -> i32;
    /// Real time, since any moment.
    fn real(&self) -> u64;
    /// The calling thread's CPU time.
    fn cpu(&self) -> u64;
    /// A thread's CPU time; None if it has ended.
    fn cpu_of(&self, thread: i32) -> Option<u64>;
}

/// The clock, which goes on while a thread has the GVL and uses CPU time. Nothing here waits or allocates.
///
/// To read a CPU clock takes a system call, and there are programs that give up the GVL every few microseconds, for
/// system calls that take no longer. So none is read where a thread gives it up for a moment, and at most every half a
/// millisecond otherwise: when a thread gives up the GVL soon after its clock was read, only the real time is noted. It
/// has had the GVL for all the CPU time that it has used by when a thread takes the GVL again, but for no more than the
/// real time until it gave it up.
///
/// So this is ahead by the CPU time that a thread uses until it takes the GVL back at once, and may be by up to half a
/// millisecond each time a thread that had to wait for a CPU meanwhile then uses one without the GVL.
#[derive(Debug)]
pub struct GvlClock {
    /// The thread that got the GVL last.
    holder: AtomicI32,
    /// For how long threads have had it, without the time since `since`.
    used: AtomicU64,
    /// That thread's CPU time when it was read last, and the real time then.
    since: AtomicU64,
    read: AtomicU64,
    /// The real time at which that thread has given up the GVL.
    given_up: AtomicU64,
    /// Odd while these change, except `given_up`, which changes alone. Who gets or gives up the GVL changes them.
    version: AtomicU32,
    /// What [`now`](Self::now) has returned last.
    last: AtomicU64,
}

impl Default for GvlClock {
    fn default() -> Self {
        Self::new()
    }
}

impl GvlClock {
    /// A clock that stands still until a thread [takes](Self::take) the GVL.
    pub const fn new() -> Self {
        Self {
            holder: AtomicI32::new(0),
            used: AtomicU64::new(0),
            since: AtomicU64::new(NONE),
            read: AtomicU64::new(0),
            given_up: AtomicU64::new(NONE),
            version: AtomicU32::new(0),
            last: AtomicU64::new(0),
        }
    }

    /// The calling thread has got the GVL.
    pub fn take(&self, clocks: &impl Clocks) {
        let (since, given_up) = (self.since.load(Ordering::SeqCst), self.given_up.load(Ordering::SeqCst));
        let (id, real) = (clocks.id(), clocks.real());
        let same = self.holder.load(Ordering::SeqCst) == id;
        if since != NONE && same && real.saturating_sub(given_up) < SHORT {
            return self.given_up.store(NONE, Ordering::SeqCst);
        }
        let cpu = clocks.cpu();
        let used = if same { self.used_until(cpu) } else { self.used(clocks) };
        self.change(|| {
            self.used.store(used, Ordering::SeqCst);
            self.holder.store(id, Ordering::SeqCst);
            self.since.store(cpu, Ordering::SeqCst);
            self.read.store(real, Ordering::SeqCst);
            self.given_up.store(NONE, Ordering::SeqCst);
        });
    }

    /// The calling thread has the GVL, whatever was said last: a thread may say that it gives it up and then keep it.
    pub fn keep(&self, clocks: &impl Clocks) {
        if !self.is_held() {
            self.take(clocks);
        } else if self.given_up.load(Ordering::SeqCst) != NONE {
            self.given_up.store(NONE, Ordering::SeqCst);
        }
    }

    /// The calling thread gives up the GVL.
    pub fn give_up(&self, clocks: &impl Clocks) {
        if !self.is_held() {
            return;
        }
        let real = clocks.real();
        if real.saturating_sub(self.read.load(Ordering::SeqCst)) < RECENT {
            self.given_up.store(real, Ordering::SeqCst);
        } else {
            self.stop(clocks);
        }
    }

    /// The clock stands still until a thread takes the GVL, which the calling thread has.
    pub fn stop(&self, clocks: &impl Clocks) {
        if !self.is_held() {
            return;
        }
        self.given_up.store(NONE, Ordering::SeqCst);
        let used = self.used_until(clocks.cpu());
        self.change(|| {
            self.used.store(used, Ordering::SeqCst);
            self.since.store(NONE, Ordering::SeqCst);
        });
    }

    /// For how many nanoseconds of CPU time threads have had the GVL so far. Any thread may ask.
    pub fn now(&self, clocks: &impl Clocks) -> u64 {
        /// Threads seldom get the GVL while this is read.
        const ATTEMPTS: u32 = 3;
        for _ in 0..ATTEMPTS {
            let version = self.version.load(Ordering::SeqCst);
            let used = self.used(clocks);
            if version % 2 == 0 && self.version.load(Ordering::SeqCst) == version {
                self.last.store(used, Ordering::Relaxed);
                return used;
            }
        }
        self.last.load(Ordering::Relaxed)
    }

    /// Whether a thread has the GVL, or is taken to.
    fn is_held(&self) -> bool {
        self.since.load(Ordering::SeqCst) != NONE
    }

    fn used(&self, clocks: &impl Clocks) -> u64 {
        if !self.is_held() {
            return self.used.load(Ordering::SeqCst);
        }
        let holder = self.holder.load(Ordering::SeqCst);
        let cpu = if holder == clocks.id() { Some(clocks.cpu()) } else { clocks.cpu_of(holder) };
        // A thread that has ended had given up the GVL before.
        self.used_until(cpu.unwrap_or(NONE))
    }

    /// For how long threads have had the GVL if the clock of the one that got it last shows `cpu`.
    fn used_until(&self, cpu: u64) -> u64 {
        let used = self.used.load(Ordering::SeqCst);
        let (since, given_up) = (self.since.load(Ordering::SeqCst), self.given_up.load(Ordering::SeqCst));
        if since == NONE {
            return used;
        }
        let most = match given_up {
            NONE => NONE,
            given_up => given_up.saturating_sub(self.read.load(Ordering::SeqCst)),
        };
        let more = cpu.saturating_sub(since).min(most);
        // A thread that has ended without having given it up.
        if cpu == NONE && most == NONE { used } else { used.saturating_add(more) }
    }

    fn change(&self, change: impl FnOnce()) {
        self.version.fetch_add(1, Ordering::SeqCst);
        change();
        self.version.fetch_add(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::windows::mix;
    use std::cell::{Cell, RefCell};
    use std::collections::HashMap;

    /// A machine on which the calling thread is whichever it is told.
    #[derive(Default)]
    struct Machine {
        thread: Cell<i32>,
        real: Cell<u64>,
        cpu: RefCell<HashMap<i32, u64>>,
        /// How often a CPU clock was read.
        reads: Cell<u32>,
        clock: GvlClock,
    }

    impl Clocks for Machine {
        fn id(&self) -> i32 {
            self.thread.get()
        }

        fn real(&self) -> u64 {
            self.real.get()
        }

        fn cpu(&self) -> u64 {
            self.cpu_of(self.thread.get()).unwrap()
        }

        fn cpu_of(&self, thread: i32) -> Option<u64> {
            self.reads.set(self.reads.get() + 1);
            self.cpu.borrow().get(&thread).copied()
        }
    }

    impl Machine {
        /// Thread 1 has the GVL.
        fn new() -> Self {
            let machine = Self::default();
            machine.take(1);
            machine
        }

        fn take(&self, thread: i32) {
            self.thread.set(thread);
            self.cpu.borrow_mut().entry(thread).or_insert(0);
            self.clock.take(self);
        }

        fn give_up(&self) {
            self.clock.give_up(self);
        }

        /// The calling thread uses a CPU for so many nanoseconds.
        fn work(&self, time: u64) {
            *self.cpu.borrow_mut().get_mut(&self.thread.get()).unwrap() += time;
            self.wait(time);
        }

        fn wait(&self, time: u64) {
            self.real.set(self.real.get() + time);
        }

        fn now(&self) -> u64 {
            self.clock.now(self)
        }
    }

    const LONG: u64 = 10_000_000;

    #[test]
    fn what_a_thread_uses_with_the_gvl_counts() {
        let machine = Machine::new();
        machine.work(LONG);
        assert_eq!(machine.now(), LONG);
        machine.work(7);
        assert_eq!(machine.now(), LONG + 7);
    }

    #[test]
    fn while_a_thread_waits_for_a_cpu_nothing_counts() {
        let machine = Machine::new();
        machine.work(LONG);
        machine.wait(LONG);
        machine.work(5);
        machine.give_up();
        machine.wait(LONG);
        machine.take(1);
        assert_eq!(machine.now(), LONG + 5);
    }

    #[test]
    fn what_a_thread_uses_without_the_gvl_does_not_count() {
        for before in [1_000, RECENT, LONG] {
            let machine = Machine::new();
            machine.work(before);
            machine.give_up();
            machine.work(LONG);
            assert_eq!(machine.now(), before);
            machine.take(1);
            assert_eq!(machine.now(), before);
            machine.work(3);
            assert_eq!(machine.now(), before + 3);
        }
    }

    #[test]
    fn a_thread_that_takes_it_back_at_once_has_kept_it() {
        let machine = Machine::new();
        let reads = machine.reads.get();
        for _ in 0..100 {
            machine.work(1_000);
            machine.give_up();
            machine.work(2_000);
            machine.take(1);
        }
        assert_eq!(machine.reads.get(), reads);
        assert_eq!(machine.now(), 300_000);
    }

    #[test]
    fn clocks_are_seldom_read() {
        let machine = Machine::new();
        for _ in 0..100_000 {
            machine.work(500);
            machine.give_up();
            machine.work(500);
            machine.take(1);
        }
        // 100 ms, and two readings in half a millisecond.
        assert!((200..=400).contains(&machine.reads.get()), "{}", machine.reads.get());
    }

    #[test]
    fn another_thread_that_takes_it_ends_the_time_of_the_first() {
        for before in [1_000, RECENT, LONG] {
            let machine = Machine::new();
            machine.work(before);
            machine.give_up();
            machine.work(SHORT / 2);
            machine.take(2);
            assert_eq!(machine.now(), before);
            machine.work(4);
            assert_eq!(machine.now(), before + 4);
            machine.give_up();
            machine.take(1);
            machine.work(5);
            assert_eq!(machine.now(), before + 9);
        }
    }

    #[test]
    fn a_thread_that_has_ended_had_it_for_the_real_time() {
        for before in [1_000, RECENT, LONG] {
            let machine = Machine::new();
            machine.take(2);
            machine.work(before);
            machine.give_up();
            machine.cpu.borrow_mut().remove(&2);
            machine.thread.set(1);
            assert_eq!(machine.now(), before);
            machine.take(1);
            assert_eq!(machine.now(), before);
        }
    }

    #[test]
    fn a_thread_that_has_ended_without_a_word_counts_for_nothing() {
        let machine = Machine::new();
        machine.work(LONG);
        machine.cpu.borrow_mut().clear();
        machine.take(2);
        assert_eq!(machine.now(), 0);
    }

    #[test]
    fn a_thread_can_keep_it_after_all() {
        for before in [1_000, LONG] {
            let machine = Machine::new();
            machine.work(before);
            machine.give_up();
            machine.clock.keep(&machine);
            machine.work(LONG);
            assert_eq!(machine.now(), before + LONG);
        }
    }

    #[test]
    fn it_stands_still_once_it_is_stopped() {
        let machine = Machine::new();
        machine.work(10);
        machine.clock.stop(&machine);
        machine.work(LONG);
        machine.give_up();
        assert_eq!(machine.now(), 10);
        machine.take(1);
        machine.work(5);
        assert_eq!(machine.now(), 15);
    }

    #[test]
    fn it_never_goes_back_and_is_ahead_by_short_gaps_only() {
        for seed in 0..200 {
            let machine = Machine::new();
            let (mut held, mut short, mut last) = (0, 0, 0);
            for step in 0..500 {
                let draw = |part: u64| mix(seed << 32 | step << 8 | part);
                let length = |draw: u64| [300, 5_000, 60_000, 3_000_000][draw as usize % 4] + draw % 100;
                let with = length(draw(0));
                machine.work(with);
                held += with;
                machine.give_up();
                let without = length(draw(1));
                if draw(2) % 2 == 0 {
                    machine.work(without)
                } else {
                    machine.wait(without)
                }
                assert!(machine.now() >= last, "seed {seed}");
                last = machine.now();
                machine.take(1 + (draw(3) % 2) as i32);
                if without < SHORT {
                    short += without;
                }
                assert!(machine.now() >= last, "seed {seed}");
                last = machine.now();
            }
            assert!((held..=held + short).contains(&last), "seed {seed}: {last}, not {held} to {held} + {short}");
        }
    }
}
