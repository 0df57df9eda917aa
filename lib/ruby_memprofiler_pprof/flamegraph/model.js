// The tree and its figures. Nodes are numbers; a parent is smaller than its children, and the root is 0.

const ROOT = 0;
const KIND = { FRAME: 0, CLASS: 1, OTHER_FRAMES: 2, OTHER_CLASSES: 3 };
// How many sums over the whole tree are kept at most.
const KEPT_SUMS = 16;
// Half of the width of a 95 % interval, in standard errors; below so many samples a figure is no more than a hint.
const Z = 1.96;
const FEW = 10;
// Groups of windows, and the same half if a variance is estimated from their sums.
const GROUPS = 16;
const T = 2.131;

class Model {
  constructor({ tree, ...about }) {
    Object.assign(this, about);
    this.strings = tree.strings;
    this.frames = tree.frames;
    this.values = tree.values;
    this.parent = Int32Array.from(tree.nodes.parent);
    this.frame = Int32Array.from(tree.nodes.frame);
    this.kind = Uint8Array.from(tree.nodes.kind);
    this.size = this.parent.length;
    this.sums = new Map();
    this.slots = new Map();
    this.linkChildren();
    this.findGems();
  }

  // A function written in C has no file: it belongs to the gem that calls it. Frames that were combined may be of any.
  findGems() {
    this.gems = new Int32Array(this.size);
    for (let node = 1; node < this.size; node += 1) {
      if (this.isOtherFrames(node)) continue;
      this.gems[node] = this.frames.gem[this.frame[node]] || this.gems[this.parent[node]];
    }
  }

  linkChildren() {
    this.firstChild = new Int32Array(this.size);
    this.nextSibling = new Int32Array(this.size);
    for (let node = this.size - 1; node > ROOT; node -= 1) {
      this.nextSibling[node] = this.firstChild[this.parent[node]];
      this.firstChild[this.parent[node]] = node;
    }
    this.hasClasses = this.kind.includes(KIND.CLASS);
  }

  children(node) {
    const children = [];
    for (let child = this.firstChild[node]; child; child = this.nextSibling[child]) children.push(child);
    return children;
  }

  isClass(node) {
    return this.kind[node] === KIND.CLASS || this.kind[node] === KIND.OTHER_CLASSES;
  }

  isOther(node) {
    return this.kind[node] >= KIND.OTHER_FRAMES;
  }

  isOtherFrames(node) {
    return this.kind[node] === KIND.OTHER_FRAMES;
  }

  name(node) {
    if (node === ROOT) return "all";
    if (this.isOther(node)) return "(other)";
    return printable(this.strings[this.frames.name[this.frame[node]]]);
  }

  // "file:line", or nothing.
  place(node) {
    const frame = this.frame[node];
    const file = printable(this.strings[this.frames.file[frame]]);
    return file && this.frames.line[frame] ? `${file}:${this.frames.line[frame]}` : file;
  }

  gem(node) {
    return this.strings[this.gems[node]] || "(unknown)";
  }

  className(frame) {
    return printable(this.strings[this.frames.name[frame]]) || "(unknown)";
  }

  path(node) {
    const path = [node];
    while (path[0] !== ROOT) path.unshift(this.parent[path[0]]);
    return path;
  }

  // What a profile has of a column in each node and all below it: value, variance and samples, the last two null if
  // they are not known; and the value of each node itself. The variance is that of what was not sampled in windows;
  // `windows` has the sums of the rest by group, null if there is none.
  sum(profile, column) {
    const key = `${profile} ${column}`;
    let sum = this.sums.get(key);
    if (!sum) {
      const { node, value, variance, samples, windows, ticks } = this.values[profile][column];
      const known = node.length === variance.length;
      const count = known ? this.accumulate(this.scatter(node, samples)) : null;
      sum = {
        self: this.scatter(node, value),
        value: this.accumulate(this.scatter(node, value)),
        variance: known ? withoutKnown(this.accumulate(this.scatter(node, variance)), count, ticks) : null,
        samples: count,
        windows: windows ? this.accumulateGroups(node, windows) : null,
      };
      if (this.sums.size >= KEPT_SUMS) this.sums.delete(this.sums.keys().next().value);
      this.sums.set(key, sum);
    }
    return sum;
  }

  scatter(nodes, values) {
    const all = new Float64Array(this.size);
    for (let index = 0; index < nodes.length; index += 1) all[nodes[index]] = values[index];
    return all;
  }

  accumulate(all) {
    for (let node = this.size - 1; node > ROOT; node -= 1) all[this.parent[node]] += all[node];
    return all;
  }

  // The sums of all groups of windows, node by node. Each has a hexadecimal digit, that of the first group the last.
  accumulateGroups(nodes, { value, packed }) {
    const all = new Float32Array(this.size * GROUPS);
    nodes.forEach((node, index) => {
      const parts = [...packed[index]].reverse().map((digit) => parseInt(digit, 16));
      const unit = value[index] / (sumOf(parts) || 1);
      parts.forEach((part, group) => { all[node * GROUPS + group] = unit * part; });
    });
    for (let node = this.size - 1; node > ROOT; node -= 1) {
      const parent = this.parent[node];
      for (let group = 0; group < GROUPS; group += 1) all[parent * GROUPS + group] += all[node * GROUPS + group];
    }
    return all;
  }

  // The variance of what was sampled in windows, see window_groups.rb. What `base` has of a group cancels out.
  windowVariance(node, windows, base = null) {
    if (!windows && !base) return 0;
    const sums = Array.from({ length: GROUPS }, (_, group) => {
      const at = node * GROUPS + group;
      return (windows ? windows[at] : 0) - (base ? base[at] : 0);
    });
    const mean = sumOf(sums) / GROUPS;
    return (sumOf(sums.map((sum) => (sum - mean) ** 2)) * GROUPS) / (GROUPS - 1);
  }

  // How wide the nodes are: as wide as the most that they have in any profile, and as their children together. So they
  // are in the same place for all profiles.
  slot(column) {
    let slot = this.slots.get(column);
    if (!slot) {
      slot = new Float64Array(this.size);
      for (let profile = 0; profile < this.values.length; profile += 1) {
        const { value } = this.sum(profile, column);
        for (let node = 0; node < this.size; node += 1) if (value[node] > slot[node]) slot[node] = value[node];
      }
      const below = new Float64Array(this.size);
      for (let node = this.size - 1; node >= ROOT; node -= 1) {
        if (below[node] > slot[node]) slot[node] = below[node];
        if (node !== ROOT) below[this.parent[node]] += slot[node];
      }
      this.slots.set(column, slot);
    }
    return slot;
  }

  estimate(node, profile, column) {
    const { value, variance, samples, windows } = this.sum(profile, column);
    if (!variance) return { value: value[node] };
    const windowVariance = this.windowVariance(node, windows);
    const margin = Math.hypot(Z * Math.sqrt(variance[node]), T * Math.sqrt(windowVariance));
    const { ticks } = this.values[profile][column];
    // If no ticks are left out, what they fell in is known, see `Estimator::most`.
    const most = ticks && samples[ROOT] >= ticks ? value[ROOT] : Infinity;
    return {
      value: value[node],
      low: Math.max(value[node] - margin, 0),
      high: Math.min(value[node] + margin, most),
      doubtful: samples[node] < FEW && variance[node] + windowVariance > 0,
    };
  }

  // What a node has more in one profile than in another. `sure` unless it may as well be chance.
  growth(node, profile, base, column) {
    const [now, then] = [this.sum(profile, column), this.sum(base, column)];
    const delta = now.value[node] - then.value[node];
    const relative = delta / Math.max(now.value[node], then.value[node], 1);
    if (!now.variance || !then.variance) return { delta, relative, sure: delta !== 0 };
    const error = Math.sqrt(this.differenceVariance(node, profile, base, column));
    const margin = Math.hypot(Z * error, T * Math.sqrt(this.windowVariance(node, now.windows, then.windows)));
    return { delta, relative, sure: Math.abs(delta) > margin, low: delta - margin, high: delta + margin };
  }

  // The variance of a difference of what was not sampled in windows, at most: what is in both profiles cancels out. As
  // in report/births.rb; report/difference.rb has the derivation.
  differenceVariance(node, profile, base, column) {
    const [now, then] = [profile, base].map((each) => this.sum(each, column).variance[node]);
    const both = now + then;
    if (!this.types[column].retained || this.objects === null || !this.sameProcess(base, profile)) return both;
    const [after, before] = [profile, base].map((each) => this.sum(each, this.objects).value[node]);
    if (before + after <= 0) return both;
    const rise = after - before;
    const born = Math.max(Math.min(after, this.allocatedSince(base, profile)?.[node] ?? after), rise, 0);
    const each = both / (before + after);
    const changed = Math.abs(now - then - rise * each);
    return Math.min((2 * born - rise) * each + changed, both);
  }

  sameProcess(base, profile) {
    const [one, other] = [base, profile].map((each) => this.profiles[each].process);
    return one === other || one === null || other === null;
  }

  // How many objects were allocated from one profile to another, by node; null where the profiles leave a gap, or do not
  // count that.
  allocatedSince(base, profile) {
    const key = `${base} ${profile}`;
    if (this.allocated?.key !== key) this.allocated = { key, counts: this.countAllocations(base, profile) };
    return this.allocated.counts;
  }

  countAllocations(base, profile) {
    if (this.allocations === null || profile <= base) return null;
    const counts = new Float64Array(this.size);
    for (let each = base + 1; each <= profile; each += 1) {
      const { node, value } = this.values[each][this.allocations];
      if (!this.profiles[each].follows || node.length === 0) return null;
      for (let index = 0; index < node.length; index += 1) counts[node[index]] += value[index];
    }
    return this.accumulate(counts);
  }

  // For each node the class (a frame) that most of its value is of, 0 if it is not known.
  mainClasses(column) {
    const slot = this.slot(column);
    const shares = new Map();
    const main = new Int32Array(this.size);
    for (let node = this.size - 1; node > ROOT; node -= 1) {
      const own = this.kind[node] === KIND.CLASS ? new Map([[this.frame[node], slot[node]]]) : shares.get(node);
      shares.delete(node);
      if (!own) continue;
      main[node] = greatest(own);
      const parent = this.parent[node];
      shares.set(parent, merged(shares.get(parent), own));
    }
    main[ROOT] = shares.has(ROOT) ? greatest(shares.get(ROOT)) : 0;
    return main;
  }
}

// Of ticks, only their split is random: see `Estimator::variance` and `variance_of_total` in the core's
// analysis/estimate.rs.
function withoutKnown(variances, samples, ticks) {
  if (!ticks) return variances;
  const least = (node) => (node === ROOT ? 0 : 2 / (ticks + 4));
  return variances.map((variance, node) => variance * Math.max(1 - samples[node] / ticks, least(node)));
}

function sumOf(values) {
  return values.reduce((sum, value) => sum + value, 0);
}

function greatest(shares) {
  let best = 0;
  let most = 0;
  for (const [key, share] of shares) if (share > most) [best, most] = [key, share];
  return best;
}

// Adds the smaller to the greater of two maps.
function merged(one, other) {
  if (!one) return other;
  const [into, from] = one.size < other.size ? [other, one] : [one, other];
  for (const [key, share] of from) into.set(key, (into.get(key) ?? 0) + share);
  return into;
}
