//! 64-bit x86.

use super::{Code, Destination, Detour, Registers, Table};
use crate::inject::area;
use object::elf::EM_X86_64;
use std::arch::global_asm;

/// This processor.
pub const TABLE: Option<Table> = Some(Table {
    machine: EM_X86_64,
    // NT_X86_XSTATE
    vector_set: 0x202,
    program_counter: |registers| registers.rip as usize,
    stack_pointer: |registers| registers.rsp as usize,
    in_system_call: |registers| (registers.orig_rax as i64) >= 0,
    detour,
    code,
});

/// Below the stack pointer, a function may use so many bytes.
const RED_ZONE: u64 = 128;
/// The general registers and the flags on the stack, in bytes.
const FRAME: u64 = 17 * 8;
/// What XRSTOR wants.
const ALIGNMENT: u64 = 64;
const DIRECTION_FLAG: u64 = 0x400;
const NR_GETPID: u64 = 39;
const NR_RESTART_SYSCALL: u64 = 219;
/// The length of the instruction `syscall`.
const SYSCALL: u64 = 2;

// The kernel's own, from a stopped system call: include/linux/errno.h.
const ERESTARTSYS: i64 = 512;
const ERESTARTNOINTR: i64 = 513;
const ERESTARTNOHAND: i64 = 514;
const ERESTART_RESTARTBLOCK: i64 = 516;

global_asm!(
    ".globl memprofiler_begin, memprofiler_job, memprofiler_enter, memprofiler_end",
    // A system call. (number, a, b, c, d)
    "memprofiler_begin:",
    "mov rax, rdi",
    "mov rdi, rsi",
    "mov rsi, rdx",
    "mov rdx, rcx",
    "mov r10, r8",
    "syscall",
    "ret",
    // The thread: rb_protect(rb_require, path, &state), which returns also if the thread is killed. (area)
    "2:",
    "push rbx",
    "sub rsp, 16",
    "mov rbx, rdi",
    "mov qword ptr [rbx + {begun}], 1",
    "mov qword ptr [rsp], 0",
    "mov rdi, [rbx + {require}]",
    "lea rsi, [rbx + {path}]",
    "mov rdx, rsp",
    "call [rbx + {protect}]",
    "mov qword ptr [rbx + {ended}], 1",
    "add rsp, 16",
    "pop rbx",
    "xor eax, eax",
    "ret",
    // The job: takes `wanted`, after it has said that it runs. XCHG is a full barrier. A child that was forked before it
    // ran has a copy of it, which nobody could take back. (area)
    "memprofiler_job:",
    "push rbx",
    "mov rbx, rdi",
    "mov eax, {getpid}",
    "syscall",
    "cmp rax, [rbx + {owner}]",
    "jne 3f",
    "mov eax, 1",
    "xchg [rbx + {ran}], rax",
    "xor eax, eax",
    "xchg [rbx + {wanted}], rax",
    "test rax, rax",
    "jz 3f",
    "lea rdi, [rip + 2b]",
    "mov rsi, rbx",
    "call [rbx + {thread_create}]",
    "mov [rbx + {thread}], rax",
    "3: pop rbx",
    "ret",
    // rdi: the area. rbp: the frame. rsp is a multiple of 16, below the frame and the image.
    "memprofiler_enter:",
    "mov qword ptr [rdi + {busy}], 1",
    "mov r12, rdi",
    "lea rbx, [rdi + {list}]",
    "4: mov rax, [rbx]",
    "test rax, rax",
    "jz 6f",
    "mov rdi, [rbx + 8]",
    "mov rsi, [rbx + 16]",
    "mov rdx, [rbx + 24]",
    "mov rcx, [rbx + 32]",
    "mov r8, [rbx + 40]",
    "call rax",
    "mov [rbx + 48], rax",
    // The result may be an argument of a later call. If it is -1, there are no later ones.
    "mov rcx, [rbx + 56]",
    "test rcx, rcx",
    "jz 5f",
    "cmp eax, -1",
    "je 6f",
    "mov [rcx], rax",
    "5: add rbx, 64",
    "jmp 4b",
    "6: mov eax, -1",
    "mov edx, -1",
    "mov rcx, [r12 + {image}]",
    "xrstor64 [rcx]",
    "mov qword ptr [r12 + {done}], 1",
    "mov qword ptr [r12 + {busy}], 0",
    "mov rsp, rbp",
    "popfq",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop r11",
    "pop r10",
    "pop r9",
    "pop r8",
    "pop rdi",
    "pop rsi",
    "pop rbp",
    "pop rbx",
    "pop rdx",
    "pop rcx",
    "pop rax",
    "ret {red_zone}",
    "memprofiler_end:",
    // A symbol at the end of a section would belong to whatever follows.
    ".byte 0",
    getpid = const NR_GETPID,
    owner = const area::OWNER,
    require = const area::REQUIRE,
    path = const area::PATH,
    protect = const area::PROTECT,
    begun = const area::BEGUN,
    ended = const area::ENDED,
    ran = const area::RAN,
    wanted = const area::WANTED,
    thread_create = const area::THREAD_CREATE,
    thread = const area::THREAD,
    busy = const area::BUSY,
    list = const area::LIST,
    image = const area::IMAGE,
    done = const area::DONE,
    red_zone = const RED_ZONE,
);

unsafe extern "C" {
    static memprofiler_begin: u8;
    static memprofiler_job: u8;
    static memprofiler_enter: u8;
    static memprofiler_end: u8;
}

fn code() -> Code {
    let begin = &raw const memprofiler_begin;
    let distance = |symbol: *const u8| symbol as usize - begin as usize;
    // SAFETY: all of it is in this program's code, which is readable and never changes.
    let bytes = unsafe { std::slice::from_raw_parts(begin, distance(&raw const memprofiler_end)) };
    Code {
        bytes,
        system_call: 0,
        job: distance(&raw const memprofiler_job),
        enter: distance(&raw const memprofiler_enter),
    }
}

fn detour(registers: &Registers, vectors: &[u8], to: &Destination) -> Detour {
    let back = after_system_call(registers, to.interrupt);
    let frame = registers.rsp - RED_ZONE - FRAME;
    let image = (frame - vectors.len() as u64) & !(ALIGNMENT - 1);
    // As the code pops them.
    let words = [
        back.eflags,
        back.r15,
        back.r14,
        back.r13,
        back.r12,
        back.r11,
        back.r10,
        back.r9,
        back.r8,
        back.rdi,
        back.rsi,
        back.rbp,
        back.rbx,
        back.rdx,
        back.rcx,
        back.rax,
        back.rip,
    ];
    let mut go = *registers;
    go.rip = to.enter as u64;
    go.rdi = to.area as u64;
    go.rbp = frame;
    go.rsp = image;
    // So that the kernel restarts nothing.
    go.orig_rax = u64::MAX;
    go.eflags &= !DIRECTION_FLAG;
    Detour {
        frame: (frame as usize, words.iter().flat_map(|word| word.to_le_bytes()).collect()),
        image: (image as usize, vectors.to_vec()),
        registers: go,
    }
}

/// What the kernel does about an interrupted system call before the thread goes on: `handle_signal` and `do_signal` of
/// arch/x86/kernel/signal.c.
fn after_system_call(registers: &Registers, interrupt: bool) -> Registers {
    let mut back = *registers;
    if (registers.orig_rax as i64) < 0 {
        return back;
    }
    let restarts = (registers.rax as i64).wrapping_neg();
    match restarts {
        ERESTARTSYS | ERESTARTNOHAND | ERESTART_RESTARTBLOCK if interrupt => {
            back.rax = -i64::from(libc::EINTR) as u64;
        }
        ERESTARTSYS | ERESTARTNOINTR | ERESTARTNOHAND => {
            back.rax = registers.orig_rax;
            back.rip -= SYSCALL;
        }
        ERESTART_RESTARTBLOCK => {
            back.rax = NR_RESTART_SYSCALL;
            back.rip -= SYSCALL;
        }
        _ => (),
    }
    back
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registers(rax: i64, orig_rax: i64) -> Registers {
        // SAFETY: registers are numbers, for which zero is a value.
        let zero: Registers = unsafe { std::mem::zeroed() };
        Registers { rax: rax as u64, orig_rax: orig_rax as u64, rip: 1002, rsp: 1 << 20, ..zero }
    }

    #[test]
    fn restarts_a_system_call_as_the_kernel_would() {
        for (rax, interrupt, expected) in [
            (-512, false, (35, 1000)),
            (-514, false, (35, 1000)),
            (-516, false, (219, 1000)),
            (-516, true, (-4, 1002)),
            (-513, true, (35, 1000)),
            (-4, false, (-4, 1002)),
            (7, true, (7, 1002)),
        ] {
            let back = after_system_call(&registers(rax, 35), interrupt);
            assert_eq!((back.rax as i64, back.rip), expected, "{rax} {interrupt}");
        }
        assert_eq!(after_system_call(&registers(-512, -1), false).rip, 1002);
    }

    #[test]
    fn leaves_the_red_zone_alone() {
        let to = Destination { enter: 5, area: 6, interrupt: false };
        let detour = detour(&registers(7, -1), &[0; 2696], &to);
        let (frame, image) = (detour.frame.0 + detour.frame.1.len(), detour.image.0 + detour.image.1.len());
        assert_eq!(frame, (1 << 20) - 128);
        assert!(image <= detour.frame.0);
        assert_eq!((detour.image.0 % 64, detour.registers.rsp as usize), (0, detour.image.0));
    }

    #[test]
    fn fits_into_the_rest_of_a_page() {
        assert!(code().bytes.len() <= crate::inject::place::CODE_SIZE);
    }
}
