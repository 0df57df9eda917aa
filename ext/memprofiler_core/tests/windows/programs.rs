//! Programs that are hard to sample.

use super::simulation::{MICROSECOND, MILLISECOND, Objects, SECOND, SITES, Vm};
use rand::RngExt;

/// Between two safe points.
const STRETCH: u64 = 20 * MICROSECOND;
const DENSE: Objects = [0, 0, 0, 0, 0, 25, 0];

/// Where objects are allocated in [`requests`]: all over, in a fixed phase of 4 %, at any place but rarely, and one
/// that leaks at one place; see also [`DENSE`].
pub const ALL_OVER: usize = 0;
pub const FIXED_PHASE: usize = 2;
pub const RARE: usize = 3;
pub const LEAK: usize = 4;
pub const BURST: usize = 5;
pub const OTHER: usize = 6;

/// Requests of 5 ms, with a garbage collection now and then.
fn requests(vm: &mut Vm, count: u64) {
    let all_over = [1, 1, 0, 0, 0, 0, 0];
    for _ in 0..count {
        vm.run(100, STRETCH, &all_over);
        vm.run(10, STRETCH, &[1, 1, 2, 0, 0, 0, 0]);
        let rare = vm.random.random_range(0..139);
        vm.run(rare, STRETCH, &all_over);
        vm.run(1, STRETCH, &[1, 1, 0, 1, 0, 0, 0]);
        vm.run(138 - rare, STRETCH, &all_over);
        vm.run(1, STRETCH, &[1, 1, 0, 0, 1, 0, 0]);
        if vm.random.random_range(0..20) == 0 {
            vm.collect(2 * MILLISECOND);
        }
    }
}

pub fn steady(vm: &mut Vm, end: u64) {
    while vm.now() < end {
        requests(vm, 10);
    }
}

/// Waits after each request.
pub fn seldom_busy(vm: &mut Vm, end: u64) {
    while vm.now() < end {
        requests(vm, 1);
        vm.sleep();
    }
}

/// Works for `length`, and then waits for 10 ms, again and again: what is allocated in the first quarter, the next half
/// and the last quarter are different sites.
pub fn waits(vm: &mut Vm, end: u64, length: u64) {
    let quarter = length / STRETCH / 4;
    while vm.now() < end {
        vm.run(quarter, STRETCH, &[2, 0, 0, 0, 0, 0, 0]);
        vm.run(2 * quarter, STRETCH, &[0, 2, 0, 0, 0, 0, 0]);
        vm.run(quarter, STRETCH, &[0, 0, 2, 0, 0, 0, 0]);
        vm.wait(10 * MILLISECOND);
    }
}

/// Computes for 5 ms, and then allocates three objects, again and again.
pub fn computes(vm: &mut Vm, end: u64) {
    while vm.now() < end {
        vm.run(250, STRETCH, &[0; SITES]);
        vm.run(1, STRETCH, &[1, 1, 1, 0, 0, 0, 0]);
    }
}

/// Bursts of `length` at random intervals of `mean`.
pub fn bursts(vm: &mut Vm, end: u64, length: u64, mean: u64) {
    let mut next = vm.exponential(mean as f64) as u64;
    while vm.now() < end {
        requests(vm, 1);
        if vm.now() >= next {
            vm.run(length / STRETCH, STRETCH, &DENSE);
            next = vm.now() + vm.exponential(mean as f64) as u64;
        }
    }
}

pub fn one_burst(vm: &mut Vm, end: u64) {
    let when = vm.random.random_range(SECOND..end - SECOND);
    while vm.now() < when {
        requests(vm, 1);
    }
    vm.run(80 * MILLISECOND / STRETCH, STRETCH, &DENSE);
    steady(vm, end);
}

/// Allocates for a millisecond at each full 10 ms of the clock.
pub fn periodic(vm: &mut Vm, end: u64) {
    while vm.now() < end {
        vm.run(MILLISECOND / STRETCH, STRETCH, &DENSE);
        let next = (vm.now() / (10 * MILLISECOND) + 1) * 10 * MILLISECOND;
        while vm.now() < next {
            vm.run(10, STRETCH, &[0, 0, 0, 0, 0, 0, 1]);
        }
    }
}

/// C functions that allocate for 20 ms without a safe point, between requests.
pub fn c_calls(vm: &mut Vm, end: u64) {
    while vm.now() < end {
        let pause = vm.random.random_range(1..=40);
        requests(vm, pause);
        vm.run(1, 20 * MILLISECOND, &[0, 0, 0, 0, 0, 0, 20_000]);
    }
}

/// Dense and sparse phases of 200 ms each.
pub fn phases(vm: &mut Vm, end: u64) {
    while vm.now() < end {
        vm.run(10_000, STRETCH, &DENSE);
        vm.run(10_000, STRETCH, &[0, 0, 0, 0, 0, 0, 2]);
    }
}

/// Phases of up to 20 ms in which the hook takes much more of the time than the program, and of up to 4 ms.
pub fn short_phases(vm: &mut Vm, end: u64) {
    while vm.now() < end {
        let [dense, sparse] = [vm.random.random_range(10..1_000), vm.random.random_range(2..200)];
        vm.run(dense, STRETCH, &[0, 0, 0, 0, 0, 60, 0]);
        vm.run(sparse, STRETCH, &[0, 0, 0, 0, 0, 0, 2]);
    }
}

/// The same, with objects for which the program needs half as long as the hook, apart from samples.
pub fn densest_phases(vm: &mut Vm, end: u64) {
    while vm.now() < end {
        let [dense, sparse] = [vm.random.random_range(3..300), vm.random.random_range(2..200)];
        vm.run(dense, STRETCH, &[0, 0, 0, 0, 0, 200, 0]);
        vm.run(sparse, STRETCH, &[0, 0, 0, 0, 0, 0, 2]);
    }
}

/// Dense and sparse work mixed finely.
pub fn fine_mix(vm: &mut Vm, end: u64) {
    while vm.now() < end {
        vm.run(5, STRETCH, &DENSE);
        vm.run(25, 2 * STRETCH, &[0, 0, 0, 0, 0, 0, 1]);
    }
}
