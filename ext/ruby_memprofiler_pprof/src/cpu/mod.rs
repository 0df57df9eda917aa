//! Samples CPU time: a timer per native thread ticks in that thread's own CPU time, and the stack is read at the next
//! safe point.
//!
//! A tick stands for the CPU time since the thread's tick before, up to the tick and not to the safe point: otherwise C
//! functions, which have few safe points, would seem to take longer. Stacks, names, labels and the encoder are those of
//! the heap profiler.

mod clocks;
pub mod discovery;
mod flush;
mod header;
mod interval;
mod job;
mod marking;
mod options;
mod reading;
mod record;
mod state;

pub use options::{Options, Threads};

use crate::allocator::reserve;
use crate::collector::cell::HookCell;
use crate::vm::cpu_clock::NativeId;
use crate::vm::ractor::MainRactor;
use crate::vm::{cpu_timer, gc, hooks, protect};
use magnus::{Error, Ruby};
use rb_sys::VALUE;
use state::State;
use std::ffi::c_int;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// The sampler that runs, if one does.
static RUNNING: AtomicPtr<Sampler> = AtomicPtr::new(std::ptr::null_mut());

/// The sampler, owned by a Ruby object. At most one of a process runs.
#[derive(Debug)]
pub struct Sampler {
    state: HookCell<State>,
    /// The Ruby object, for the GC's write barriers; a root while the sampler runs.
    holder: AtomicU64,
    /// Where a panic happened, if one did: the data is not used any more.
    panicked: OnceLock<&'static str>,
}

impl Default for Sampler {
    fn default() -> Self {
        Self {
            state: HookCell::new(State::default()),
            holder: AtomicU64::new(rb_sys::Qnil as VALUE),
            panicked: OnceLock::new(),
        }
    }
}

/// Why a sampler does not start.
#[derive(Debug)]
pub enum StartFailure {
    /// Another one runs, or this one.
    Running,
    /// The signal cannot be had.
    NoSignal(io::Error),
    /// The system has no timers on CPU clocks, or no more of them.
    NoTimer(io::Error),
    /// Ruby raised an exception.
    Raised(Error),
}

impl From<Error> for StartFailure {
    fn from(error: Error) -> Self {
        Self::Raised(error)
    }
}

impl Sampler {
    /// Whether it runs.
    pub fn is_running(&self) -> bool {
        std::ptr::eq(RUNNING.load(Ordering::Acquire), self)
    }

    /// Whether it was ever started.
    pub fn was_started(&self) -> bool {
        self.state.with(|state| state.was_started())
    }

    /// Where it panicked, if it did.
    pub fn failure(&self) -> Option<&'static str> {
        self.panicked.get().copied()
    }

    /// Runs `body` with the sampler that runs, if one does.
    fn running(body: impl FnOnce(&Self)) {
        // SAFETY: a sampler that runs is kept alive and in place.
        if let Some(sampler) = unsafe { RUNNING.load(Ordering::Acquire).as_ref() } {
            body(sampler);
        }
    }

    /// The Ruby object. Jobs and thread hooks, of other Ractors as well, reach the sampler through `RUNNING`, which is
    /// set after this.
    fn holder(&self) -> VALUE {
        self.holder.load(Ordering::Relaxed)
    }

    /// Starts sampling `threads`, given as Thread and number, and those that begin later if `options` says so. `holder`
    /// is the Ruby object that owns this sampler.
    ///
    /// # Safety
    /// `holder` and the threads must be alive.
    pub unsafe fn start(
        &self,
        ruby: &Ruby,
        main: MainRactor,
        holder: VALUE,
        options: Options,
        threads: &[(VALUE, NativeId)],
    ) -> Result<(), StartFailure> {
        if !RUNNING.load(Ordering::Acquire).is_null() {
            return Err(StartFailure::Running);
        }
        reserve::fill();
        stop_at_exit(holder)?;
        gc::prepare_marking(ruby)?;
        cpu_timer::listen(options.signal, job::run).map_err(StartFailure::NoSignal)?;
        self.holder.store(holder, Ordering::Relaxed);
        // SAFETY: the cell is in a box of its own until the GC frees the sampler, which it does not do while the cell
        // is registered.
        protect(|| unsafe { rb_sys::rb_gc_register_address(self.holder.as_ptr()) })?;
        RUNNING.store(std::ptr::from_ref(self).cast_mut(), Ordering::Release);
        // SAFETY: the GVL is held; the threads are alive, and marked by the holder, which is a root by now.
        let begun = self.state.with(|state| unsafe { state.begin(options, threads) }).map_err(StartFailure::NoTimer);
        for &(thread, _) in threads {
            // SAFETY: the GVL is held, and both are alive.
            unsafe { gc::write_barrier(holder, thread) };
        }
        let hooked = begun.and_then(|()| match options.threads {
            // SAFETY: the hook finds the sampler by itself.
            Threads::All => Ok(unsafe { hooks::add(main, job::on_thread, job::THREAD_EVENTS, job::DATA) }?),
            Threads::These => Ok(()),
        });
        if hooked.is_err() {
            self.stop(main);
        }
        hooked
    }

    /// Ends sampling. What was sampled waits for a flush.
    pub fn stop(&self, main: MainRactor) {
        if !self.is_running() {
            return;
        }
        self.read_stacks();
        cpu_timer::ignore();
        hooks::remove(main, job::on_thread, job::DATA);
        self.state.with(State::end);
        RUNNING.store(std::ptr::null_mut(), Ordering::Release);
        // SAFETY: registered by `start`. What was sampled is marked by the Ruby object itself.
        unsafe { rb_sys::rb_gc_unregister_address(self.holder.as_ptr()) };
    }

    /// For a forked child, in which only this thread is left, and no timer: goes on with its own CPU time. An error
    /// says why it could not, and has stopped instead.
    ///
    /// # Safety
    /// Must be called in a forked child.
    pub unsafe fn after_fork(&self, main: MainRactor) -> io::Result<()> {
        // SAFETY: in a forked child, whose only thread is in no body.
        let is_lost = unsafe { self.state.abandon_if_taken(State::default) };
        if !self.is_running() {
            self.state.with(State::forget_parent);
            return Ok(());
        }
        let begun = if is_lost {
            Err(io::Error::other("the process was forked while it took a sample"))
        } else {
            // SAFETY: the GVL is held, and a sampler that runs has a holder that is a root, and marks the threads.
            self.state.with(|state| unsafe { state.begin_in_child() })
        };
        if begun.is_err() {
            self.state.with(State::begin_without_threads);
            self.stop(main);
        }
        begun
    }

    /// Figures.
    pub fn statistics(&self) -> Statistics {
        self.state.with(|state| state.statistics())
    }

    /// Bytes held outside Ruby's heap.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + if self.failure().is_some() { 0 } else { self.state.with(|state| state.bytes()) }
    }
}

/// Has the sampler stopped before the VM ends: the handler asks the VM, and must not find it gone. By a finalizer of its
/// class, as these come after all `at_exit` blocks, in which most of a program may run: all of minitest/autorun's tests.
fn stop_at_exit(holder: VALUE) -> Result<(), Error> {
    static REGISTERED: AtomicBool = AtomicBool::new(false);
    unsafe extern "C" fn end(_: VALUE, _: VALUE, _: c_int, _: *const VALUE, _: VALUE) -> VALUE {
        // SAFETY: the VM calls this in the main thread, before it frees what has no finalizer.
        let main = unsafe { MainRactor::new() };
        Sampler::running(|sampler| sampler.stop(main));
        rb_sys::Qnil as VALUE
    }
    if !REGISTERED.load(Ordering::Relaxed) {
        // SAFETY: the GVL is held, and the holder is alive, as is its class until the end.
        protect(|| unsafe {
            rb_sys::rb_define_finalizer(
                rb_sys::rb_obj_class(holder),
                rb_sys::rb_proc_new(Some(end), rb_sys::Qnil as VALUE),
            )
        })?;
        REGISTERED.store(true, Ordering::Relaxed);
    }
    Ok(())
}

/// Figures of a sampler.
#[derive(Debug, Clone, Copy)]
pub struct Statistics {
    /// The options in force.
    pub options: Options,
    /// Threads with timers.
    pub threads: usize,
    /// Threads that got none.
    pub refused: u64,
    /// Ticks since the start.
    pub samples: u64,
    /// Different stacks since the last flush.
    pub stacks: usize,
    /// How often there were too many stacks, or no memory for one.
    pub lost_stacks: u64,
    /// Signals in this process.
    pub signals: u64,
    /// Whether the handler of the signal was replaced.
    pub signal_taken: bool,
}
