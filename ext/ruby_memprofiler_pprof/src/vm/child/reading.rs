//! Waits for what a copy writes.

use super::process::{CpuTime, Process};
use std::io::{Error, ErrorKind};
use std::os::fd::RawFd;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// How long to wait before looking at the copy's clock, at least and at most.
const TICKS: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(500)];
/// A copy that has not run for so many ticks on end hangs: it never waits for anything but this process and a
/// processor, and some of that it gets on the busiest machine. Ticks, since time also passes while both are stopped.
const MOST_TICKS: u32 = 10;
/// A pipe's usual capacity.
const CHUNK: usize = 1 << 16;

/// Why reading has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The copy has ended like this.
    Ended(ExitStatus),
    /// By a signal. Reading can continue.
    Interrupted,
    /// There is no time left.
    Late,
    /// The copy stands still.
    Hung,
}

/// Reads what a copy writes.
#[derive(Debug)]
pub struct Reading {
    pipe: RawFd,
    /// Whether there is nothing more to read.
    closed: bool,
    deadline: Instant,
    tick: Duration,
    /// The ticks since the copy has last run, and its clock then.
    quiet: u32,
    clock: Option<CpuTime>,
    /// What it has written so far.
    pub bytes: Vec<u8>,
}

impl Reading {
    /// Reads from `pipe` until `deadline`. A copy that hangs is noticed in a quarter of the time, but in one second at
    /// least, and in five at most.
    pub fn new(pipe: RawFd, deadline: Instant) -> Self {
        let left = deadline.saturating_duration_since(Instant::now());
        let tick = (left / (4 * MOST_TICKS)).clamp(TICKS[0], TICKS[1]);
        Self { pipe, closed: false, deadline, tick, quiet: 0, clock: None, bytes: Vec::new() }
    }

    /// Reads on until the copy has ended. Needs no GVL.
    pub fn go_on(&mut self, process: &mut Process) -> Event {
        loop {
            if self.closed {
                return process.wait().map_or(Event::Interrupted, Event::Ended);
            }
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Event::Late;
            }
            let mut ready = libc::pollfd { fd: self.pipe, events: libc::POLLIN, revents: 0 };
            // Rounded up, so as not to poll in vain.
            let milliseconds = self.tick.min(left).as_millis() as i32 + 1;
            // SAFETY: one struct, which the function reads and changes.
            let event = match unsafe { libc::poll(&raw mut ready, 1, milliseconds) } {
                0 => self.look_at(process),
                1.. => self.read(),
                _ => Some(Event::Interrupted),
            };
            if let Some(event) = event {
                return event;
            }
        }
    }

    /// A copy closes its end of the pipe only when it ends.
    fn read(&mut self) -> Option<Event> {
        self.bytes.reserve(CHUNK);
        let room = self.bytes.spare_capacity_mut();
        // SAFETY: the function writes to the room that it is given.
        let size = unsafe { libc::read(self.pipe, room.as_mut_ptr().cast(), room.len()) };
        if size < 0 && Error::last_os_error().kind() == ErrorKind::Interrupted {
            return Some(Event::Interrupted);
        }
        let size = usize::try_from(size).unwrap_or(0);
        self.closed = size == 0;
        // SAFETY: so many bytes have been written behind those that were there.
        unsafe { self.bytes.set_len(self.bytes.len() + size) };
        None
    }

    fn look_at(&mut self, process: &Process) -> Option<Event> {
        let clock = process.cpu_time();
        self.quiet = if clock == self.clock { self.quiet + 1 } else { 0 };
        self.clock = clock;
        (self.quiet >= MOST_TICKS).then_some(Event::Hung)
    }
}
