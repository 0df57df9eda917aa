//! `MemprofilerPprof::Profile`: the part that adds up figures, for reports, graphs and other formats.

use super::long_work::{rest, without_gvl};
use super::profile::{Profile, optional};
use magnus::typed_data::Obj;
use magnus::{Error, Module, RArray, RClass, RString, Ruby, TryConvert, method};
use memprofiler_core::analysis::{self, By, Estimator, Group, Sum, TreeOptions};
use memprofiler_core::profile::{self, CombineError};
use std::sync::Arc;

/// Defines the methods.
pub fn init(class: RClass) -> Result<(), Error> {
    class.define_private_method("native_total", method!(total, 1))?;
    class.define_private_method("native_top", method!(top, 2))?;
    class.define_private_method("native_tree", method!(tree, 5))?;
    class.define_private_method("native_folded", method!(folded, 1))?;
    class.define_private_method("native_speedscope", method!(speedscope, 2))?;
    class.define_private_method("native_flamegraph", method!(flamegraph, 3))
}

fn check_column(ruby: &Ruby, this: &Profile, column: usize) -> Result<(), Error> {
    if column < this.0.header().sample_types.len() {
        return Ok(());
    }
    Err(Error::new(ruby.exception_index_error(), format!("there is no column {column}")))
}

fn by(ruby: &Ruby, name: &str) -> Result<By, Error> {
    match name {
        "method" => Ok(By::Method),
        "line" => Ok(By::Line),
        "file" => Ok(By::File),
        "gem" => Ok(By::Gem),
        "class" => Ok(By::Class),
        _ => Err(Error::new(ruby.exception_arg_error(), format!("cannot group by {name}"))),
    }
}

/// [value, variance of what was not sampled in windows, samples, sums of what was by group of windows, the most that it
/// can be]; all but the value are nil if unknown, the sums also if nothing was
type Estimate = (i64, Option<f64>, Option<f64>, Option<Vec<f64>>, Option<f64>);

/// Makes estimates for one column of a profile.
struct Estimates<'a> {
    estimator: Estimator<'a>,
    most: Option<f64>,
}

impl<'a> Estimates<'a> {
    fn new(profile: &'a profile::Profile, column: usize) -> Self {
        let estimator = Estimator::new(profile, column);
        let most = estimator.most();
        Self { estimator, most }
    }

    fn of(&self, sum: &Sum) -> Estimate {
        self.with_variance(sum, self.estimator.variance(sum))
    }

    fn of_total(&self, total: &Sum) -> Estimate {
        self.with_variance(total, self.estimator.variance_of_total(total))
    }

    fn with_variance(&self, sum: &Sum, variance: f64) -> Estimate {
        let known = self.estimator.knows_error();
        let windows = sum.windows.as_ref().filter(|_| known).map(|sums| sums.to_vec());
        (sum.value, known.then_some(variance), known.then_some(sum.samples), windows, self.most)
    }
}

fn total(ruby: &Ruby, this: Obj<Profile>, column: usize) -> Result<Estimate, Error> {
    check_column(ruby, &this, column)?;
    let profile = Arc::clone(&this.0);
    let estimates = Estimates::new(&profile, column);
    let total = without_gvl(ruby, |interrupt| estimates.estimator.total(interrupt))?;
    Ok(estimates.of_total(&total))
}

/// [name, file, line, function]
fn group(ruby: &Ruby, group: &Group) -> RArray {
    let array = ruby.ary_new_capa(6);
    let fields = [Some(&group.name), group.file.as_ref()];
    // Pushing to a new Array does not fail.
    let _ = fields.into_iter().try_for_each(|field| array.push(optional(ruby, field)));
    let _ = array.push(group.line);
    let _ = array.push(optional(ruby, group.function.as_ref()));
    array
}

/// [name, file, line, function, flat, cumulative] for each site
fn top(ruby: &Ruby, this: Obj<Profile>, column: usize, by_name: String) -> Result<RArray, Error> {
    check_column(ruby, &this, column)?;
    let (profile, by) = (Arc::clone(&this.0), by(ruby, &by_name)?);
    let estimates = Estimates::new(&profile, column);
    let sites = without_gvl(ruby, |interrupt| analysis::top(&profile, column, by, interrupt))?;
    let array = ruby.ary_new_capa(sites.len());
    for (number, site) in sites.iter().enumerate() {
        rest(number)?;
        let row = group(ruby, &site.group);
        row.push(estimates.of(&site.flat))?;
        row.push(estimates.of(&site.cumulative))?;
        array.push(row)?;
    }
    Ok(array)
}

/// [nodes, groups]: [parent, group or nil, flat, cumulative] for each node, [name, file, line, function] for each group
fn tree(
    ruby: &Ruby,
    this: Obj<Profile>,
    column: usize,
    by_name: String,
    classes: bool,
    min_fraction: f64,
    max_depth: u32,
) -> Result<RArray, Error> {
    check_column(ruby, &this, column)?;
    let options = TreeOptions { by: by(ruby, &by_name)?, classes, min_fraction, max_depth };
    let profile = Arc::clone(&this.0);
    let estimates = Estimates::new(&profile, column);
    let (nodes, groups) = without_gvl(ruby, |interrupt| analysis::tree(&profile, column, options, interrupt))?;
    let array = ruby.ary_new_capa(nodes.len());
    for (number, node) in nodes.iter().enumerate() {
        rest(number)?;
        let is_root = number == 0;
        let sum = &node.cumulative;
        let cumulative = if is_root { estimates.of_total(sum) } else { estimates.of(sum) };
        array.push((node.parent, node.group, estimates.of(&node.flat), cumulative))?;
    }
    let result = ruby.ary_new();
    result.push(array)?;
    result.push(ruby.ary_from_iter(groups.iter().map(|each| group(ruby, each))))?;
    Ok(result)
}

fn folded(ruby: &Ruby, this: Obj<Profile>, column: usize) -> Result<RString, Error> {
    check_column(ruby, &this, column)?;
    let profile = Arc::clone(&this.0);
    Ok(ruby.str_new(&without_gvl(ruby, |interrupt| analysis::folded(&profile, column, interrupt))?))
}

fn speedscope(ruby: &Ruby, this: Obj<Profile>, name: String, exporter: String) -> Result<RString, Error> {
    let profile = Arc::clone(&this.0);
    let json = without_gvl(ruby, |interrupt| analysis::speedscope(&profile, &name, &exporter, interrupt));
    json.map(|json| ruby.str_new(&json))
}

fn profiles(array: RArray) -> Result<Vec<Arc<profile::Profile>>, Error> {
    array.into_iter().map(|other| Ok(Arc::clone(&Obj::<Profile>::try_convert(other)?.0))).collect()
}

/// JSON, see the core's `flamegraph`; or [index, reason] for a profile that cannot be shown with this one
type Flamegraph = (Option<RString>, Option<(usize, String)>);

fn flamegraph(
    ruby: &Ruby,
    this: Obj<Profile>,
    others: RArray,
    by_name: String,
    min_fraction: f64,
) -> Result<Flamegraph, Error> {
    let (first, others, by) = (Arc::clone(&this.0), profiles(others)?, by(ruby, &by_name)?);
    let all: Vec<&profile::Profile> = std::iter::once(&*first).chain(others.iter().map(|other| &**other)).collect();
    let json = without_gvl(ruby, |interrupt| match analysis::flamegraph(&all, by, min_fraction, interrupt) {
        Err(CombineError::Incompatible(error)) => Ok(Err((error.index, error.to_string()))),
        Err(CombineError::Interrupted(error)) => Err(error),
        Ok(json) => Ok(Ok(json)),
    })?;
    Ok(match json {
        Ok(json) => (Some(ruby.str_new(&json)), None),
        Err(error) => (None, Some(error)),
    })
}
