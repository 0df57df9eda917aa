//! The native thread that watches. It touches no Ruby object, and hardly wakes up while memory is plenty.

use super::alarm::Alarm;
use super::shared::{Progress, Shared};
use super::{current, emergency};
use crate::faults;
use crate::vm::{child, gvl, ractor, safepoint, signals, threads};
use memprofiler_core::watch::{Level, Reading, Reason, Source, Watch};
use std::ffi::c_void;
use std::io::{self, ErrorKind};
use std::thread;
use std::time::{Duration, Instant};

/// More than twice what the thread uses.
const STACK_SIZE: usize = 256 << 10;

/// The time from one look to the next while a profile is being taken.
const STEP: Duration = Duration::from_millis(1);

/// The same while that may take long: others have their turn, or a large heap is written to a slow disk.
const QUEUE_STEP: Duration = Duration::from_millis(10);

/// For how long other threads are asked to make way: a Ruby thread that has not begun by then is not going to.
const INSISTENCE: Duration = Duration::from_secs(5);

/// For how long a profile is waited for.
const LONGEST: Duration = Duration::from_secs(60);

/// After this time without a safe point there may be none before the end.
const PATIENCE: Duration = Duration::from_millis(250);

/// How long Ruby has in any case: a thread that comes to a safe point makes way within moments.
const CHANCE: Duration = Duration::from_millis(20);

/// What writing without the GVL takes: time, and bytes of memory.
const EMERGENCY: (Duration, u64) = (Duration::from_millis(50), 8_000_000);

/// For how long a thread makes way, each time that it is asked.
const WAY: Duration = Duration::from_micros(200);

/// Creates the thread.
pub(super) fn start(shared: &'static Shared, level: Level) -> io::Result<()> {
    let watcher = Watcher { shared, level, begun: Instant::now() };
    let builder = thread::Builder::new().name("memprofiler-oom".into()).stack_size(STACK_SIZE);
    // The program's signals are for Ruby's threads.
    signals::with_all_blocked(|| builder.spawn(move || shared.use_up_source(|source| watcher.run(source)))).map(drop)
}

struct Watcher {
    shared: &'static Shared,
    level: Level,
    begun: Instant,
}

impl Watcher {
    fn run(&self, source: &mut Source) {
        let mut watch = Watch::new(self.level);
        loop {
            let reading = Reading { copied: child::is_under_way(), ..source.read(self.begun.elapsed()) };
            let look = watch.look(self.begun.elapsed(), &reading);
            if let Some(reason) = look.fire {
                let unshared = || source.unshared().unwrap_or(reading.resident);
                let own = watch.is_at_fault(&reading, unshared);
                let mut alarm = Alarm { reason, reading, growth: watch.growth(), own, last: look.next.is_none() };
                if matches!((self.level, reason), (Level::Resident(_), Reason::Level)) {
                    // What others of the cgroup use is no reason.
                    alarm = Alarm { reading: Reading { usage: None, limit: None, ..reading }, own: true, ..alarm };
                }
                self.attend(alarm, source, &mut watch);
            }
            let Some(next) = look.next else { return };
            if !self.shared.sleep(next) {
                return;
            }
        }
    }

    /// Sees to it that a profile is taken.
    fn attend(&self, alarm: Alarm, source: &mut Source, watch: &mut Watch) {
        let (mut asked, mut written) = (Instant::now(), false);
        let [mut before, mut most] = [u64::MAX, 0];
        self.shared.ask(alarm);
        loop {
            let reading = source.read(self.begun.elapsed());
            watch.follow(self.begun.elapsed(), &reading);
            let used = reading.usage.unwrap_or(reading.resident);
            (before, most) = (before.min(used), most.max(used));
            let progress = self.shared.progress();
            if progress == Progress::Queued {
                // Ruby does answer: what counts is the time from its turn on.
                asked = Instant::now();
            }
            // A thread that takes a profile may have lost the GVL to one that keeps it.
            let patience = if progress == Progress::Taking { 8 * PATIENCE } else { PATIENCE };
            let late = asked.elapsed() > patience;
            let had_chance = progress == Progress::Queued || asked.elapsed() > CHANCE;
            let dying = had_chance && watch.is_dying(&reading, EMERGENCY.0, EMERGENCY.1);
            if !written && progress != Progress::Done && (late || dying) {
                let path = self.shared.files().wanted.clone();
                let emergency = self.shared.use_vm(|| emergency::write(self.shared.collector, &path, &alarm, dying));
                let Some(emergency) = emergency else { return };
                // Nobody could do anything about another error; there is no profile then.
                written = !matches!(&emergency, Err(error) if error.kind() == ErrorKind::WouldBlock);
                self.shared.files().written = emergency.ok();
            }
            let insists = progress != Progress::Queued && asked.elapsed() <= INSISTENCE;
            match progress {
                Progress::Done => break,
                // What is known is in a file.
                Progress::Waiting if written && !insists => return,
                _ if asked.elapsed() > LONGEST => return,
                _ => {}
            }
            if insists {
                self.shared.use_vm(|| {
                    faults::point("memory watch");
                    safepoint::request(make_way);
                });
            }
            if !self.shared.sleep(if insists { STEP } else { QUEUE_STEP }) {
                return;
            }
        }
        // What the program took meanwhile is in there, too: the more it does, the earlier the next one has to begin.
        watch.measured(asked.elapsed(), most.saturating_sub(before));
    }
}

/// The job: lets another thread have the GVL.
///
/// # Safety
/// Must run at a safe point of a Ruby thread.
unsafe extern "C" fn make_way(_: *mut c_void) {
    let waits = |shared: &Shared| shared.progress() != Progress::Done && !shared.is_served_by(threads::current());
    if ractor::is_main() && current().is_some_and(waits) {
        gvl::make_way(WAY);
    }
}
