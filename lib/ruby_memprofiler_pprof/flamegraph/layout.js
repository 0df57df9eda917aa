// Which box is where, in rows from the outermost call inwards, for what is zoomed into.

// Narrower boxes are not shown one by one, in pixels.
const NARROWEST = 0.5;
// Stands for several boxes that are too narrow.
const CROWD = -1;

class Layout {
  constructor(model) {
    this.model = model;
    this.sorted = new Map();
    this.column = null;
  }

  // For each row its boxes from left to right: [{ node, x, width }]. The rows of those that call `root` come first.
  rows({ column, root, classes, width }) {
    if (this.column !== column) this.sorted.clear();
    this.column = column;
    this.slot = this.model.slot(column);
    const path = this.model.path(root);
    const rows = path.map((node) => [{ node, x: 0, width }]);
    const scale = this.slot[root] ? width / this.slot[root] : 0;
    const waiting = [{ node: root, x: 0, row: path.length }];
    while (waiting.length) {
      const { node, x, row } = waiting.pop();
      for (const box of this.boxesBelow(node, x, scale, classes)) {
        (rows[row] ??= []).push(box);
        if (box.node !== CROWD) waiting.push({ node: box.node, x: box.x, row: row + 1 });
      }
    }
    for (const row of rows) row.sort((a, b) => a.x - b.x);
    return rows;
  }

  boxesBelow(node, start, scale, classes) {
    const boxes = [];
    let x = start;
    let crowd = 0;
    for (const child of this.children(node)) {
      if (!classes && this.model.isClass(child)) continue;
      const width = this.slot[child] * scale;
      if (width >= NARROWEST) {
        boxes.push({ node: child, x, width });
        x += width;
      } else {
        crowd += width;
      }
    }
    if (crowd >= NARROWEST) boxes.push({ node: CROWD, x, width: crowd });
    return boxes;
  }

  // The widest first, what was too small last.
  children(node) {
    let children = this.sorted.get(node);
    if (!children) {
      const rank = (child) => (this.model.isOther(child) ? 1 : 0);
      children = this.model.children(node).sort((a, b) => rank(a) - rank(b) || this.slot[b] - this.slot[a]);
      this.sorted.set(node, children);
    }
    return children;
  }
}
