//! Releases what flushes needed, some of it at a time.

use super::{CLOCK_STRIDE, FlushFailure};
use crate::collector::resolve::Owner;
use crate::collector::stacks::Stacks;

/// What the previous flush left over. `rest` is called in between.
pub fn leftovers(owner: &impl Owner, mut rest: impl FnMut() -> Result<(), FlushFailure>) -> Result<(), FlushFailure> {
    while !owner.with_sites(|sites| sites.release_leftovers(CLOCK_STRIDE)) {
        rest()?;
    }
    Ok(())
}

/// What was needed to name stacks and classes, and memory that they no longer need. `rest` is called in between.
pub fn tidy(owner: &impl Owner, mut rest: impl FnMut() -> Result<(), FlushFailure>) -> Result<(), FlushFailure> {
    while !owner.with_sites(|sites| sites.release_sources(CLOCK_STRIDE)) {
        rest()?;
    }
    while owner.with_sites(|sites| sites.forget_some_names()) {
        rest()?;
    }
    for part in 0..Stacks::PARTS {
        owner.with_sites(|sites| sites.stacks.shrink(part));
        rest()?;
    }
    let mut next = Some(0);
    while let Some(first) = next {
        next = owner.with_sites(|sites| sites.prune_names(first, CLOCK_STRIDE));
        rest()?;
    }
    Ok(())
}
