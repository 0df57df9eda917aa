//! What the watcher shares with the Ruby thread that takes its profiles.

use super::alarm::Alarm;
use crate::collector::Collector;
use memprofiler_core::watch::Source;
use rb_sys::VALUE;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Where a profile is.
#[derive(Debug, Clone, Copy)]
enum Stage {
    /// None is wanted.
    Quiet,
    /// The Ruby thread is to take one.
    Asked(Alarm),
    /// It does so.
    Taking(Alarm),
    /// It waits until other processes have taken theirs.
    Queued(Alarm),
}

/// Why a wait has ended.
#[derive(Debug)]
pub(super) enum Outcome {
    /// A profile is to be taken.
    Alarm(Alarm),
    /// The watcher was stopped.
    Stopped,
    /// The thread was interrupted.
    Interrupted,
}

/// Where the profile that was asked for is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// Ruby has not begun.
    Waiting,
    /// Ruby takes it.
    Taking,
    /// Ruby would take it, but it is not this process's turn.
    Queued,
    /// It is there.
    Done,
}

/// What the watcher and the Ruby thread tell each other.
#[derive(Debug)]
struct Dialogue {
    stage: Stage,
    /// The Ruby thread was interrupted in its wait.
    interrupted: bool,
}

/// Profiles without the GVL.
#[derive(Debug)]
pub(super) struct Files {
    /// The one to write.
    pub wanted: PathBuf,
    /// The one that was written.
    pub written: Option<PathBuf>,
}

/// One watcher.
#[derive(Debug)]
pub(super) struct Shared {
    /// How many there were in this process, with this one.
    pub number: u64,
    /// The one before in this process.
    pub former: Option<&'static Shared>,
    /// Whose samples to write.
    pub collector: &'static Collector,
    process: u32,
    /// Only locked for moments, on threads of this process.
    dialogue: Mutex<Dialogue>,
    changed: Condvar,
    stopped: AtomicBool,
    /// Whether the watcher may be about to call the VM, or is reading what it has.
    using_vm: AtomicBool,
    /// The Ruby thread's Thread, which is only compared.
    server: AtomicUsize,
    files: Mutex<Files>,
    /// How long the watcher may sleep: see [`sleep`](Self::sleep).
    wakeup: Condvar,
    /// What the watcher reads, with the lock held as long as it lives; then None.
    pub source: Mutex<Option<Source>>,
}

impl Shared {
    /// Of this process; nothing is wanted.
    pub fn new(collector: &'static Collector, path: PathBuf, source: Source, former: Option<&'static Shared>) -> Self {
        Self {
            number: former.map_or(0, |former| former.number) + 1,
            former,
            collector,
            process: std::process::id(),
            dialogue: Mutex::new(Dialogue { stage: Stage::Quiet, interrupted: false }),
            changed: Condvar::new(),
            stopped: AtomicBool::new(false),
            using_vm: AtomicBool::new(false),
            server: AtomicUsize::new(0),
            files: Mutex::new(Files { wanted: path, written: None }),
            wakeup: Condvar::new(),
            source: Mutex::new(Some(source)),
        }
    }

    /// Whether it is not of a process that this one was forked from, whose threads are gone.
    pub fn is_of_this_process(&self) -> bool {
        self.process == std::process::id()
    }

    fn dialogue(&self) -> MutexGuard<'_, Dialogue> {
        self.dialogue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `body` with the watcher's files, if they are open, and closes them.
    pub fn use_up_source(&self, body: impl FnOnce(&mut Source)) {
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(source) = &mut *source {
            body(source);
        }
        // Taken before they are closed: in a child that is forked meanwhile their numbers may be those of other files.
        drop(source.take());
    }

    /// Notes which Thread waits, and the file to write without the GVL.
    pub fn serve(&self, thread: VALUE, path: PathBuf) {
        self.server.store(thread as usize, Ordering::Relaxed);
        self.files().wanted = path;
    }

    /// The profiles without the GVL.
    pub fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether that is the Thread which waits.
    pub fn is_served_by(&self, thread: VALUE) -> bool {
        self.server.load(Ordering::Relaxed) == thread as usize
    }

    /// Waits for an alarm, without the GVL.
    pub fn wait(&self) -> Outcome {
        let mut dialogue = self.dialogue();
        loop {
            if self.stopped.load(Ordering::SeqCst) {
                return Outcome::Stopped;
            }
            if std::mem::take(&mut dialogue.interrupted) {
                return Outcome::Interrupted;
            }
            if let Stage::Asked(alarm) = dialogue.stage {
                return Outcome::Alarm(alarm);
            }
            dialogue = self.changed.wait(dialogue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The Ruby thread has the GVL, and takes the profile.
    pub fn take(&self, alarm: Alarm) {
        self.dialogue().stage = Stage::Taking(alarm);
    }

    /// The Ruby thread waits its turn from now on, or no longer.
    pub fn queue(&self, waits: bool) {
        let stage = &mut self.dialogue().stage;
        match *stage {
            Stage::Taking(alarm) | Stage::Queued(alarm) => {
                *stage = if waits { Stage::Queued(alarm) } else { Stage::Taking(alarm) };
            }
            Stage::Quiet | Stage::Asked(_) => {}
        }
    }

    /// Ends a wait early.
    pub fn interrupt(&self) {
        self.dialogue().interrupted = true;
        self.changed.notify_all();
    }

    /// Asks for a profile.
    pub fn ask(&self, alarm: Alarm) {
        self.dialogue().stage = Stage::Asked(alarm);
        self.changed.notify_all();
    }

    /// The profile was taken. Returns the file that was written without the GVL, if one was.
    pub fn done(&self) -> Option<PathBuf> {
        self.dialogue().stage = Stage::Quiet;
        self.wakeup.notify_all();
        self.files().written.take()
    }

    /// Where the profile is.
    pub fn progress(&self) -> Progress {
        match self.dialogue().stage {
            Stage::Quiet => Progress::Done,
            Stage::Asked(_) => Progress::Waiting,
            Stage::Taking(_) => Progress::Taking,
            Stage::Queued(_) => Progress::Queued,
        }
    }

    /// Why the Ruby thread takes a profile, for the profile.
    pub fn remark(&self) -> Option<String> {
        match self.dialogue().stage {
            Stage::Taking(alarm) => Some(format!("dump_above={alarm}")),
            _ => None,
        }
    }

    /// Lets the watcher sleep, until the time has passed, a profile is done, or it was stopped. Returns whether it goes
    /// on.
    pub fn sleep(&self, time: Duration) -> bool {
        let dialogue = self.dialogue();
        if !self.stopped.load(Ordering::SeqCst) {
            drop(self.wakeup.wait_timeout(dialogue, time));
        }
        !self.stopped.load(Ordering::SeqCst)
    }

    /// Calls the VM or reads what it has, unless the watcher was stopped.
    pub fn use_vm<R>(&self, body: impl FnOnce() -> R) -> Option<R> {
        // SeqCst, as in `stop`: that sees this store, or this sees that the watcher was stopped.
        self.using_vm.store(true, Ordering::SeqCst);
        let _using = Using(&self.using_vm);
        (!self.stopped.load(Ordering::SeqCst)).then(body)
    }

    /// Ends the watcher. When this returns it neither calls the VM nor reads what it has any more.
    pub fn stop(&self) {
        {
            let _dialogue = self.dialogue();
            self.stopped.store(true, Ordering::SeqCst);
            self.changed.notify_all();
            self.wakeup.notify_all();
        }
        // See `use_vm`. It takes nanoseconds, or as long as a profile that is being written.
        while self.using_vm.load(Ordering::SeqCst) {
            thread::yield_now();
        }
    }
}

/// The watcher's use of the VM, which ends even if the watcher panics: [`Shared::stop`] waits for that.
struct Using<'a>(&'a AtomicBool);

impl Drop for Using<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}
