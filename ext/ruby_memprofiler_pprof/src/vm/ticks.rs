//! The ticks of one thread, from the signal handler that counts them to the job that reads its stack.

use super::place::TickFrame;
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// What a thread did when it ticked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// It ran Ruby code, or C code with the GVL.
    Running,
    /// It collected garbage.
    Collecting,
    /// It did not have the GVL.
    Released,
}

/// Ticks in a row at which a thread did the same in the same place. A tick is a signal, however many periods have
/// passed: one look at the thread.
#[derive(Debug, Clone, Copy)]
pub struct Ticks {
    /// How many.
    pub count: u64,
    /// What the thread did.
    pub doing: Doing,
    /// Where it was, if it is followed and was not without the GVL.
    pub place: Option<TickFrame>,
    /// Its CPU time at the last of them, in nanoseconds.
    pub cpu: u64,
}

/// In how many places ticks wait at most: 80 ms at 100 a second, if there is no safe point, each in another place. What
/// comes then is added to the last.
const LENGTH: usize = 8;

/// A queue of ticks, to which one handler at a time adds. One at a time takes them, perhaps in another thread.
#[derive(Debug)]
pub struct Queue {
    /// The thread's `rb_thread_t`; null if its places are not noted.
    thread: AtomicPtr<u8>,
    /// How many entries have been added, of which the last [`LENGTH`] are there.
    added: AtomicUsize,
    /// How many have been taken.
    taken: AtomicUsize,
    entries: [Entry; LENGTH],
}

#[derive(Debug)]
struct Entry {
    /// Written only while the entry does not wait. Zeros at first, for which a library's file has no bytes.
    what: UnsafeCell<MaybeUninit<(Doing, Option<TickFrame>)>>,
    count: AtomicU64,
    cpu: AtomicU64,
}

// SAFETY: the cells of entries that wait are only read, and the others only used by one handler at a time.
unsafe impl Sync for Queue {}

impl Queue {
    /// Without ticks.
    pub const fn new() -> Self {
        Self {
            thread: AtomicPtr::new(null_mut()),
            added: AtomicUsize::new(0),
            taken: AtomicUsize::new(0),
            entries: [const {
                Entry { what: UnsafeCell::new(MaybeUninit::zeroed()), count: AtomicU64::new(0), cpu: AtomicU64::new(0) }
            }; LENGTH],
        }
    }

    /// Forgets what waits. No handler may add anything meanwhile.
    pub fn clear(&self) {
        self.taken.store(self.added.load(Ordering::Acquire), Ordering::Release);
    }

    /// Has the places of a thread noted from now on, by its `rb_thread_t`, or none if that is null.
    ///
    /// # Safety
    /// It must be that of the thread whose handler adds to this queue, and exist until another is set. If its native
    /// thread runs another one meanwhile, it must have no frames any more.
    pub unsafe fn follow(&self, thread: *const u8) {
        self.thread.store(thread.cast_mut(), Ordering::Release);
    }

    /// Adds a tick of the calling thread, with its CPU time. Safe in a signal handler.
    pub fn add(&self, doing: Doing, cpu: u64) {
        let thread = self.thread.load(Ordering::Acquire);
        let has_gvl = doing != Doing::Released;
        // SAFETY: it is the calling thread's, or one without frames, as `follow` requires.
        let place = if thread.is_null() { None } else { unsafe { TickFrame::of(thread, has_gvl) } };
        let added = self.added.load(Ordering::Relaxed);
        let waiting = added.wrapping_sub(self.taken.load(Ordering::Acquire));
        let last = &self.entries[added.wrapping_sub(1) % LENGTH];
        // SAFETY: only this handler writes entries, and it has written one that waits.
        let is_alike = || unsafe { (*last.what.get()).assume_init() } == (doing, place);
        if waiting == LENGTH || waiting > 0 && is_alike() {
            // If the entry is taken meanwhile, the tick may not count, but its time counts with the next one.
            last.count.fetch_add(1, Ordering::Relaxed);
            last.cpu.store(cpu, Ordering::Relaxed);
            return;
        }
        let next = &self.entries[added % LENGTH];
        // SAFETY: the entry does not wait, so nobody reads it.
        unsafe { *next.what.get() = MaybeUninit::new((doing, place)) };
        next.count.store(1, Ordering::Relaxed);
        next.cpu.store(cpu, Ordering::Relaxed);
        self.added.store(added.wrapping_add(1), Ordering::Release);
    }

    /// Takes the ticks that have waited longest; None if none wait.
    pub fn take(&self) -> Option<Ticks> {
        let taken = self.taken.load(Ordering::Relaxed);
        if taken == self.added.load(Ordering::Acquire) {
            return None;
        }
        let entry = &self.entries[taken % LENGTH];
        // SAFETY: the entry waits, so it has been written, and is not now.
        let (doing, place) = unsafe { (*entry.what.get()).assume_init() };
        let (count, cpu) = (entry.count.load(Ordering::Relaxed), entry.cpu.load(Ordering::Relaxed));
        self.taken.store(taken.wrapping_add(1), Ordering::Release);
        Some(Ticks { count, doing, place, cpu })
    }

    /// Whether none wait.
    pub fn is_empty(&self) -> bool {
        self.taken.load(Ordering::Relaxed) == self.added.load(Ordering::Relaxed)
    }
}
