//! Faults that specs provoke, and traps for what a hook must not do. They exist only with the feature `faults`, which
//! no released library has; without it, these functions do nothing.

#[cfg(feature = "faults")]
pub mod api;
#[cfg(feature = "faults")]
mod child;
#[cfg(feature = "faults")]
mod child_work;
#[cfg(feature = "faults")]
mod heap;
#[cfg(feature = "faults")]
mod injection;
#[cfg(feature = "faults")]
mod malloc_trap;
#[cfg(feature = "faults")]
mod trap;

#[cfg(feature = "faults")]
pub use injection::{denied, lacks_memory, point, time};
#[cfg(feature = "faults")]
pub use trap::{InHook, blocks, panicked};

#[cfg(not(feature = "faults"))]
pub use none::{InHook, blocks, denied, lacks_memory, panicked, point, time};

#[cfg(not(feature = "faults"))]
mod none {
    /// A place at which a fault can be injected.
    #[inline(always)]
    pub fn point(_place: &'static str) {}

    /// Whether something is to be treated as missing.
    #[inline(always)]
    pub fn denied(_what: &str) -> bool {
        false
    }

    /// Whether an allocation of so many bytes fails.
    #[inline(always)]
    pub fn lacks_memory(_bytes: usize) -> bool {
        false
    }

    /// The time of the system's clock.
    #[inline(always)]
    pub fn time(now: std::time::SystemTime) -> std::time::SystemTime {
        now
    }

    /// Exists while a hook runs.
    pub struct InHook;

    impl InHook {
        /// Sets the traps.
        #[inline(always)]
        pub fn enter(_hook: &'static str) -> Self {
            Self
        }
    }

    /// Must be called before anything that may wait for another thread.
    #[inline(always)]
    pub fn blocks(_what: &'static str) {}

    /// Must be called after catching a panic.
    #[inline(always)]
    pub fn panicked(_place: &'static str) {}
}
