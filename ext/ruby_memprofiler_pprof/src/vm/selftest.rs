//! Compares the frame walker with the VM's own, inside a real hook, before the walker is used.

use super::frames::{ControlFrames, LAYOUT, Running};
use super::hooks::{self, TraceArg};
use super::layout;
use super::ractor::MainRactor;
use super::{profile_frames, threads};
use crate::faults;
use magnus::{Error, Ruby, Value};
use rb_sys::VALUE;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Allocates in each kind of frame that the walker distinguishes. It can see the program's top-level variables:
/// parentheses make clear what is a call.
const EXERCISE: &str = r"
Class.new do
  def self.build = yield
  def plain = [1].each { Object.new }
  def indexed = [1].each_with_index.map { |value, index| [value, index] }
  define_method(:defined) do
    plain()
    indexed()
    begin
      raise ArgumentError
    rescue ArgumentError
      [[Object.new]].each { |list| list.each { String.new } }
    ensure
      Object.new
    end
  end
  new().then { |object| object.defined && object.instance_eval('Object.new') }
  build { proc { Object.new }.call }
end
nil
";

const MAX_FRAMES: usize = 256;

#[derive(Default)]
struct Probe {
    compared: usize,
    failure: Option<String>,
}

/// Why the walker cannot be used on this Ruby; None if it can.
pub fn run(ruby: &Ruby, main: MainRactor) -> Result<Option<String>, Error> {
    if LAYOUT.is_none() || faults::denied("layout") {
        return Ok(Some(format!("Ruby {}.{} is unknown", super::RUBY_MAJOR, super::RUBY_MINOR)));
    }
    let mut probe = Probe::default();
    // A pointer with its lowest bit set looks like a small integer to the VM, which would mark a plain one.
    let data = std::ptr::from_mut(&mut probe) as VALUE | 1;
    // SAFETY: the probe outlives the registration.
    unsafe { hooks::add(main, on_newobj, hooks::NEWOBJ, data) }?;
    let result = ruby.eval::<Value>(EXERCISE);
    hooks::remove(main, on_newobj, data);
    result?;
    if probe.compared < 20 && probe.failure.is_none() {
        probe.failure = Some(format!("saw only {} allocations", probe.compared));
    }
    Ok(probe.failure)
}

unsafe extern "C" fn on_newobj(data: VALUE, arg: *const TraceArg) {
    // SAFETY: `run` registered this pointer and waits until no Ractor is in the hook; the VM's lock, which a NEWOBJ
    // hook holds, keeps others away from the probe meanwhile.
    let probe = unsafe { &mut *((data & !1) as *mut Probe) };
    if probe.failure.is_some() {
        return;
    }
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the VM passes a valid argument.
        let context = unsafe { (*arg).context };
        if threads::current_context() != context {
            return Some("the thread's execution context is not where it was expected".to_owned());
        }
        if faults::denied("walker") {
            return Some("the frames differ".to_owned());
        }
        // SAFETY: inside the hook the context's frames do not change.
        unsafe { compare(context) }
    }));
    probe.compared += 1;
    probe.failure = outcome.unwrap_or_else(|_| Some("the walker panicked".to_owned()));
}

/// # Safety
/// Must be called in a NEWOBJ hook of `context`.
unsafe fn compare(context: *const u8) -> Option<String> {
    let (mut expected, mut lines) = ([0 as VALUE; MAX_FRAMES], [0i32; MAX_FRAMES]);
    // SAFETY: a hook runs on a Ruby thread.
    let count = unsafe { profile_frames::read(&mut expected, &mut lines) };
    // SAFETY: a hook gets the context of the running thread, and `run` checked that the layout is known.
    let frames = unsafe { ControlFrames::of(context) };
    let mut index = 0;
    for number in (0..frames.len()).rev() {
        // SAFETY: the number is below the length, and nothing has continued.
        let Some((value, line)) = (unsafe { as_the_vm_says(frames, number) }) else { continue };
        if index == count {
            return (count < MAX_FRAMES).then(|| format!("found more than {count} frames"));
        }
        // With YJIT the VM sometimes reports line 0.
        if value != expected[index] || (line != lines[index] && lines[index] != 0) {
            return Some(format!("frame {index} of {count} differs, line {line} instead of {}", lines[index]));
        }
        index += 1;
    }
    // Ruby 3.1 adds the dummy frame at the bottom of the stack.
    (count > index + 1).then(|| format!("found {index} of {count} frames"))
}

/// What `rb_profile_frames` returns for a frame: unlike backtraces it ignores blocks, and repeats a C function for each
/// block of C code that it runs.
///
/// # Safety
/// As for [`ControlFrames::get`].
unsafe fn as_the_vm_says(frames: ControlFrames, number: usize) -> Option<(VALUE, i32)> {
    // SAFETY: there is a frame with this number, and nothing continues, so its method entry and code stay alive.
    unsafe {
        let frame = frames.get(number);
        let entry = frame.method_entry();
        let kind = |entry: VALUE| {
            let definition = *((entry as usize + layout::ME_DEF) as *const usize);
            *(definition as *const usize) & layout::METHOD_TYPE_MASK
        };
        match frame.running(entry) {
            Running::Ruby { iseq, position } => {
                let value = if entry != 0 && kind(entry) == layout::METHOD_TYPE_ISEQ { entry } else { iseq };
                Some((value, position.line(iseq) as i32))
            }
            Running::Native => Some((entry, 0)),
            Running::Hidden => {
                let native = frame.is_native() && entry != 0 && kind(entry) == layout::METHOD_TYPE_CFUNC;
                native.then_some((entry, 0))
            }
        }
    }
}
