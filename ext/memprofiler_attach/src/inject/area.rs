//! The area: a kilobyte of the process's memory through which this tool and the code there talk. Distances from its
//! beginning, in bytes; words of 8 bytes unless said otherwise.

/// 1: the last list was run to its end. This tool writes 0 before.
pub const DONE: usize = 16;
/// 1: a thread is in the middle of a list.
pub const BUSY: usize = 24;
/// The address of the vector registers that it returns with.
pub const IMAGE: usize = 32;
/// 1: the job is to create the thread. Whoever makes it 0, the job or this tool, decides that.
pub const WANTED: usize = 40;
/// 1: the job has run. Behind `WANTED`, with which it is written.
pub const RAN: usize = WANTED + 8;
/// The Thread that it has created.
pub const THREAD: usize = 56;
/// 1: the thread's `require` has ended, however it did.
pub const ENDED: usize = 64;
/// 1: the thread has begun. The program may have killed it before it did.
pub const BEGUN: usize = 72;
/// The address of `rb_require`.
pub const REQUIRE: usize = 80;
/// The address of `rb_thread_create`.
pub const THREAD_CREATE: usize = 88;
/// The address of `rb_protect`.
pub const PROTECT: usize = 96;
/// The process that this is about, by the id that it sees itself. A forked child has a copy, in which nothing goes on.
pub const OWNER: usize = 104;
/// The name of the file to be required, with its zero.
pub const PATH: usize = 112;
/// The most bytes of that.
pub const PATH_SIZE: usize = 256;
/// Where the kernel writes signals' actions.
pub const ACTIONS: usize = PATH + PATH_SIZE;
/// The size of such an action, and where in it the handler's address is.
pub const ACTION_SIZE: usize = 32;
/// How many there are.
pub const MOST_ACTIONS: usize = 4;
/// Calls, and a zero behind the last.
pub const LIST: usize = 512;
/// The size of a call: function, five arguments, result, and where the result goes, if anywhere.
pub const CALL_SIZE: usize = 64;
/// The most calls.
pub const MOST_CALLS: usize = 7;
/// All of it.
pub const SIZE: usize = LIST + CALL_SIZE * (MOST_CALLS + 1);

const _: () = assert!(ACTIONS + ACTION_SIZE * MOST_ACTIONS <= LIST && SIZE == 1024);

/// A call of a function in the process.
#[derive(Debug, Clone, Copy, Default)]
pub struct Call {
    /// Its address.
    pub function: usize,
    /// Those that it takes; the others do no harm.
    pub arguments: [usize; 5],
    /// The call, by its number, whose first argument the result is. If it is -1, no more calls are made.
    pub result_to: Option<usize>,
}

impl Call {
    /// The bytes of a list for the area at `area`.
    pub fn list(calls: &[Self], area: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(CALL_SIZE * (MOST_CALLS + 1));
        for call in calls.iter().take(MOST_CALLS) {
            let [a, b, c, d, e] = call.arguments;
            let goes_to = call.result_to.map_or(0, |number| area + LIST + CALL_SIZE * number + 8);
            for word in [call.function, a, b, c, d, e, 0, goes_to] {
                bytes.extend(word.to_ne_bytes());
            }
        }
        bytes.extend([0; CALL_SIZE]);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_calls() {
        let first = Call { function: 1, result_to: Some(1), ..Call::default() };
        let second = Call { function: 2, arguments: [3, 4, 5, 6, 7], ..Call::default() };
        let bytes = Call::list(&[first, second], 0x1000);
        let words: Vec<usize> =
            bytes.chunks_exact(8).map(|word| usize::from_ne_bytes(word.try_into().unwrap())).collect();
        assert_eq!(words[..8], [1, 0, 0, 0, 0, 0, 0, 0x1000 + LIST + CALL_SIZE + 8]);
        assert_eq!(words[8..16], [2, 3, 4, 5, 6, 7, 0, 0]);
        assert_eq!(words[16..], [0; 8]);
    }
}
