// What the tooltip and the line at the bottom say about a node. All text comes from the profiled program and is only ever
// set as text.

class Details {
  constructor(model) {
    this.model = model;
    this.tooltip = document.getElementById("tooltip");
    this.line = document.getElementById("details");
  }

  interval({ low, high }, unit) {
    return low === undefined ? "" : `${formatValue(low, unit)} – ${formatValue(high, unit)}`;
  }

  growthInterval({ low, high }, unit) {
    return low === undefined ? "" : `${formatGrowth(low, unit)} – ${formatGrowth(high, unit)}`;
  }

  describe(node, { profile, column, base }) {
    const { model } = this;
    const { unit } = model.types[column];
    const estimate = model.estimate(node, profile, column);
    const share = formatShare(estimate.value, model.sum(profile, column).value[ROOT]);
    const parts = [model.name(node), formatValue(estimate.value, unit), share];
    if (estimate.low !== undefined) parts.push(`95 %: ${this.interval(estimate, unit)}`);
    if (base !== null && base !== profile) parts.push(formatGrowth(model.growth(node, profile, base, column).delta, unit));
    if (model.place(node)) parts.push(model.place(node));
    return parts.filter(Boolean).join("  ·  ");
  }

  setLine(text) {
    this.line.textContent = text;
    this.line.title = text;
  }

  show(node, state, x, y) {
    this.tooltip.replaceChildren(...this.content(node, state));
    this.tooltip.hidden = false;
    const { width, height } = this.tooltip.getBoundingClientRect();
    const left = x + 16 + width > window.innerWidth ? x - 16 - width : x + 16;
    const top = y + 16 + height > window.innerHeight ? y - 16 - height : y + 16;
    this.tooltip.style.left = `${Math.max(left, 8)}px`;
    this.tooltip.style.top = `${Math.max(top, 8)}px`;
  }

  hide() {
    this.tooltip.hidden = true;
  }

  content(node, state) {
    const { model } = this;
    const content = [element("h3", model.name(node))];
    if (model.isOther(node)) content.push(element("p", "boxes that are too small to be shown"));
    if (model.isClass(node) && !model.isOther(node)) content.push(element("p", "class of the objects"));
    if (model.place(node)) content.push(element("p", model.place(node)));
    const several = node === ROOT || model.isOtherFrames(node);
    if (!several) content.push(element("p", `gem: ${printable(model.gem(node))}`));
    content.push(this.table(node, state));
    const { unit } = model.types[state.column];
    const own = model.sum(state.profile, state.column).self[node] + this.inClasses(node, state);
    if (own && !several && !model.isClass(node)) {
      content.push(element("p", `itself: ${formatValue(own, unit)} of ${formatType(model.types[state.column])}`));
    }
    if (model.estimate(node, state.profile, state.column).doubtful) {
      content.push(element("p", "low confidence: rests on fewer than ten samples"));
    }
    return content;
  }

  // What the class leaves of a node have was allocated by the node itself.
  inClasses(node, { profile, column }) {
    const { value } = this.model.sum(profile, column);
    return this.model
      .children(node)
      .filter((child) => this.model.isClass(child))
      .reduce((sum, child) => sum + value[child], 0);
  }

  table(node, { profile, column, base }) {
    const { model } = this;
    const table = element("table");
    model.types.forEach((type, index) => {
      const estimate = model.estimate(node, profile, index);
      const share = formatShare(estimate.value, model.sum(profile, index).value[ROOT]);
      const row = element("tr", undefined, index === column ? "shown" : undefined);
      const interval = this.interval(estimate, type.unit);
      row.append(element("td", formatType(type)), element("td", formatValue(estimate.value, type.unit)));
      row.append(element("td", interval && `95 %: ${interval}`), element("td", share));
      table.append(row);
    });
    if (base !== null && base !== profile) {
      const growth = model.growth(node, profile, base, column);
      const { unit } = model.types[column];
      const row = element("tr");
      const interval = this.growthInterval(growth, unit);
      row.append(element("td", "growth"), element("td", formatGrowth(growth.delta, unit)));
      row.append(element("td", interval && `95 %: ${interval}`), element("td", growth.sure ? "" : "may be chance"));
      table.append(row);
    }
    return table;
  }
}
