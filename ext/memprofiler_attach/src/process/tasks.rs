//! The threads of a process in a PID namespace of its own, such as a container's, where they have other ids.

use super::Status;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;

/// The ids of a process's threads.
#[derive(Debug)]
pub struct Tasks {
    pid: i32,
    is_elsewhere: bool,
    /// Ids here by those there. A thread may have ended since.
    known: RefCell<HashMap<u32, i32>>,
}

impl Tasks {
    /// Those of process `pid`.
    pub fn of(pid: i32) -> Self {
        let own = Status::of(pid).ok().and_then(|status| status.own_id());
        Self { pid, is_elsewhere: own.is_some_and(|own| own != pid), known: RefCell::default() }
    }

    /// The id here of the thread that is `own` for the process; None if there is none any more.
    pub fn id(&self, own: u32) -> Option<i32> {
        let own_id = i32::try_from(own).ok()?;
        if !self.is_elsewhere {
            return Some(own_id);
        }
        let is_own = |&tid: &i32| self.own_id(tid) == Some(own_id);
        if let Some(known) = self.known.borrow().get(&own).copied().filter(is_own) {
            return Some(known);
        }
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid)).ok()?;
        let tasks = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok());
        let ids = tasks.filter_map(|tid| Some((u32::try_from(self.own_id(tid)?).ok()?, tid)));
        let mut known = self.known.borrow_mut();
        *known = ids.collect();
        known.get(&own).copied()
    }

    fn own_id(&self, tid: i32) -> Option<i32> {
        Status::of_file(&format!("/proc/{}/task/{tid}/status", self.pid))?.own_id()
    }
}
