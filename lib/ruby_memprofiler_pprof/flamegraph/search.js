// Which nodes match a regular expression.

class Search {
  constructor(model) {
    this.model = model;
    this.clear();
  }

  clear() {
    this.query = "";
    this.error = null;
    this.matching = null;
  }

  // Case matters only if there are capitals. Fields: error, if `query` is no regular expression.
  set(query) {
    this.clear();
    this.query = query;
    if (query === "") return;
    let pattern;
    try {
      pattern = new RegExp(query, /\p{Lu}/u.test(query) ? "" : "i");
    } catch (error) {
      this.error = error.message;
      return;
    }
    const { model } = this;
    const frames = new Map();
    const matches = (node) => {
      const frame = model.frame[node];
      if (!frames.has(frame)) frames.set(frame, pattern.test(model.name(node)) || pattern.test(model.place(node)));
      return frames.get(frame);
    };
    this.matching = new Uint8Array(model.size);
    for (let node = 1; node < model.size; node += 1) {
      if (!model.isOther(node) && matches(node)) this.matching[node] = 1;
    }
  }

  get active() {
    return this.matching !== null;
  }

  // What the matching nodes below `root` have together, each part counted once, how many there are, and the first.
  matched({ root, classes }, value) {
    const { model, matching } = this;
    const INSIDE = 1;
    const COUNTED = 2;
    const where = new Uint8Array(model.size);
    let sum = 0;
    let count = 0;
    let first;
    for (let node = root; node < model.size; node += 1) {
      let place = node === root ? INSIDE : where[model.parent[node]];
      if (!place || (!classes && model.isClass(node))) continue;
      if (matching[node] && value[node] !== 0) {
        count += 1;
        first ??= node;
        if (place === INSIDE) {
          sum += value[node];
          place = COUNTED;
        }
      }
      where[node] = place;
    }
    return { sum, count, first };
  }
}
