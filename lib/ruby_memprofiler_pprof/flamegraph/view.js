// Draws the boxes. The canvas is as big as what can be seen of it, and is drawn anew when that changes.

const ROW = 21;
const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
const PADDING = 5;
// Narrower boxes, in pixels, have no text.
const NARROWEST_TEXT = 24;
// Between the name in a box and the figure.
const GAP = 8;
const ELLIPSIS = "…";

class View {
  constructor(model, colours) {
    this.model = model;
    this.colours = colours;
    this.layout = new Layout(model);
    this.canvas = document.getElementById("canvas");
    this.scroller = document.getElementById("scroller");
    this.extent = document.getElementById("extent");
    this.context = this.canvas.getContext("2d");
    this.widths = new Map();
    this.rows = [];
    this.scroller.addEventListener("scroll", () => this.paint());
  }

  // Arranges the boxes and draws them. `state` says what to show, `marks` which boxes to set apart.
  show(state, marks) {
    this.state = state;
    this.marks = marks;
    this.width = this.scroller.clientWidth;
    this.height = this.scroller.clientHeight;
    this.rows = this.layout.rows({ ...state, width: this.width });
    this.extent.style.height = `${Math.max(this.rows.length * ROW, this.height)}px`;
    // A scroll bar may have come or gone.
    if (this.scroller.clientWidth !== this.width) {
      this.width = this.scroller.clientWidth;
      this.rows = this.layout.rows({ ...state, width: this.width });
    }
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.canvas.style.height = `${this.height}px`;
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.paint();
  }

  paint() {
    if (!this.state) return;
    const { context } = this;
    context.clearRect(0, 0, this.width, this.height);
    context.font = FONT;
    context.textBaseline = "middle";
    const { value } = this.model.sum(this.state.profile, this.state.column);
    const slot = this.model.slot(this.state.column);
    this.rows.forEach((boxes, row) => {
      const y = this.top(row);
      if (y + ROW < 0 || y > this.height) return;
      for (const box of boxes) {
        const filled = box.node === CROWD ? 1 : value[box.node] / slot[box.node];
        this.paintBox(box, y, Number.isFinite(filled) ? filled : 0);
      }
    });
    for (const [node, colour] of this.marks.outlined()) this.outline(node, colour);
  }

  // Where a row begins, in pixels from the upper end of the canvas.
  top(row) {
    const whole = Math.max(this.rows.length * ROW, this.height);
    return (this.state.flame ? whole - (row + 1) * ROW : row * ROW) - this.scroller.scrollTop;
  }

  paintBox(box, y, filled) {
    const { node, x, width } = box;
    const { context, colours } = this;
    const shown = Math.max(width - (width > 3 ? 1 : 0), 0.5);
    const plain = this.marks.dims(node) ? colours.pale(colours.fill(node)) : colours.fill(node);
    context.fillStyle = filled < 1 ? colours.pale(plain) : plain;
    context.fillRect(x, y, shown, ROW - 1);
    if (filled > 0 && filled < 1) {
      context.fillStyle = plain;
      context.fillRect(x, y, shown * filled, ROW - 1);
    }
    if (node === CROWD || width < NARROWEST_TEXT) return;
    // Where the filled part ends, so does the colour that can be read on it.
    const end = shown * filled;
    if (end > 0) this.paintText(box, y, plain, x, end);
    if (end < shown) this.paintText(box, y, colours.pale(plain), x + end, shown - end);
  }

  // The part of a box's text between `from` and `from + width`.
  paintText(box, y, ground, from, width) {
    const { context } = this;
    const [name, figure] = this.marks.label(box.node);
    const label = this.fit(name, box.width - 2 * PADDING);
    if (!label) return;
    context.save();
    context.beginPath();
    context.rect(from, y, width, ROW);
    context.clip();
    context.fillStyle = this.colours.text(ground);
    context.globalAlpha = this.marks.dims(box.node) ? 0.55 : 1;
    context.fillText(label, box.x + PADDING, y + ROW / 2);
    const end = box.x + PADDING + this.widthOf(label) + GAP;
    if (end + this.widthOf(figure) + PADDING <= box.x + box.width) {
      context.globalAlpha *= 0.65;
      context.fillText(figure, end, y + ROW / 2);
    }
    context.restore();
  }

  fit(text, width) {
    if (this.widthOf(text) <= width) return text;
    let length = Math.floor((text.length * width) / this.widthOf(text));
    while (length > 1 && this.widthOf(text.slice(0, length) + ELLIPSIS) > width) length -= 1;
    return length > 1 ? text.slice(0, length) + ELLIPSIS : "";
  }

  widthOf(text) {
    let width = this.widths.get(text);
    if (width === undefined) {
      if (this.widths.size > 20000) this.widths.clear();
      width = this.context.measureText(text).width;
      this.widths.set(text, width);
    }
    return width;
  }

  outline(node, colour) {
    const found = this.find(node);
    if (!found) return;
    this.context.strokeStyle = colour;
    this.context.lineWidth = 2;
    this.context.strokeRect(found.x + 1, this.top(found.row) + 1, Math.max(found.width - 3, 1), ROW - 3);
  }

  // The box of a node, with its row.
  find(node) {
    const row = this.model.path(node).length - 1;
    const box = this.rows[row]?.find((candidate) => candidate.node === node);
    return box && { ...box, row };
  }

  // The node at a point of the window, or null.
  nodeAt(clientX, clientY) {
    const area = this.canvas.getBoundingClientRect();
    const [x, y] = [clientX - area.left, clientY - area.top];
    const row = this.rows.findIndex((_, index) => y >= this.top(index) && y < this.top(index) + ROW);
    const box = this.rows[row]?.find((candidate) => x >= candidate.x && x < candidate.x + candidate.width);
    return box && box.node !== CROWD ? box.node : null;
  }

  scrollTo(node) {
    const found = this.find(node);
    if (!found) return;
    const y = this.top(found.row);
    if (y < 0) this.scroller.scrollTop += y - ROW;
    if (y + ROW > this.height) this.scroller.scrollTop += y + 2 * ROW - this.height;
  }

  // To what is zoomed into, behind its caller: there is room for what it calls.
  scrollToRoot() {
    const before = Math.max(this.model.path(this.state.root).length - 2, 0) * ROW;
    this.scroller.scrollTop = this.state.flame ? this.scroller.scrollHeight - this.height - before : before;
  }

  // The node that is reached from another by an arrow key.
  neighbour(node, direction) {
    const found = this.find(node);
    if (!found) return this.state.root;
    const inwards = this.state.flame ? "up" : "down";
    if (direction === "up" || direction === "down") {
      if (direction !== inwards) return node === ROOT ? node : this.model.parent[node];
      const below = (this.rows[found.row + 1] ?? []).filter((box) => box.node !== CROWD);
      return below.find((box) => this.model.parent[box.node] === node)?.node ?? node;
    }
    const boxes = this.rows[found.row].filter((box) => box.node !== CROWD);
    const at = boxes.findIndex((box) => box.node === node);
    return boxes[at + (direction === "right" ? 1 : -1)]?.node ?? node;
  }
}
