// Puts everything together: what is shown follows the state, and the state follows the user and the address.

// Milliseconds per profile when a series is played.
const PACE = 900;
const KEYS = [
  ["← → ↑ ↓", "move to a sibling, the caller or a callee"],
  ["Enter, click", "zoom into the box"],
  ["Esc, Backspace", "zoom out by one box"],
  ["Home", "zoom out all the way"],
  ["/", "search by regular expression; Esc in the field ends it"],
  ["n, N", "next and previous match"],
  ["v, V", "next and previous value"],
  ["c", "colour by gem, class or growth"],
  ["k", "classes of the objects as leaves"],
  ["f", "icicle or flame"],
  ["[ ], space", "previous and next profile of a series, play it"],
  ["t", "light or dark"],
  ["?", "this help"],
];
// Which keys are for a control itself while it has the focus.
const CONTROL_KEYS = [
  ["select, input, button", /^(Enter| |Arrow.*)$/],
  ["select, input", /^Home$/],
  ["select", /^\p{L}$/u],
];
const COLOUR_NAMES = { gem: "gem", class: "class of the objects", growth: "growth" };

class App {
  constructor(data) {
    this.model = new Model(data);
    this.state = new State(this.model);
    this.colours = new Colours(this.model);
    this.view = new View(this.model, this.colours);
    this.search = new Search(this.model);
    this.details = new Details(this.model);
    this.controls = Object.fromEntries(
      ["value", "colour", "icicle", "flame", "classes", "search", "matches", "theme", "help", "series", "play", "time",
        "moment", "path", "legend", "summary", "canvas", "keys"].map((id) => [id, document.getElementById(id)]),
    );
    this.selected = null;
    this.hovered = null;
    this.systemDark = window.matchMedia("(prefers-color-scheme: dark)");
    this.fillControls();
    this.listen();
    this.state.read(window.location.hash);
    this.search.set(this.state.query);
    this.show();
    this.view.scrollToRoot();
  }

  fillControls() {
    const { controls, model, state } = this;
    document.getElementById("title").textContent = printable(model.title);
    model.types.forEach((type, column) => {
      const unit = type.unit === "count" ? "" : ` (${printable(type.unit)})`;
      controls.value.add(new Option(formatType(type) + unit, column));
    });
    for (const colour of state.colours) controls.colour.add(new Option(COLOUR_NAMES[colour], colour));
    controls.classes.hidden = !model.hasClasses;
    controls.series.hidden = state.moments < 2;
    controls.time.max = state.moments - 1;
    for (const [key, does] of KEYS) document.getElementById("keylist").append(element("dt", key), element("dd", does));
    const series = "Each box is as wide as its largest value in any of the profiles, and filled up to its value in the one shown.";
    document.getElementById("reading").textContent = `Each box is a call path, as wide as what was allocated there and below. ${
      model.profiles.length > 1 ? series : ""}`;
  }

  listen() {
    const { controls } = this;
    controls.value.addEventListener("change", () => this.set({ column: Number(controls.value.value) }));
    controls.colour.addEventListener("change", () => this.set({ colour: controls.colour.value }));
    controls.icicle.addEventListener("click", () => this.turn(false));
    controls.flame.addEventListener("click", () => this.turn(true));
    controls.classes.addEventListener("click", () => this.toggleClasses());
    controls.search.addEventListener("input", () => this.find(controls.search.value));
    controls.theme.addEventListener("click", () => this.toggleTheme());
    controls.help.addEventListener("click", () => controls.keys.showModal());
    controls.play.addEventListener("click", () => this.togglePlay());
    controls.time.addEventListener("input", () => this.set({ time: Number(controls.time.value) }));
    controls.canvas.addEventListener("mousemove", (event) => this.hover(event));
    controls.canvas.addEventListener("mouseleave", () => this.leave());
    controls.canvas.addEventListener("click", (event) => this.click(event));
    document.addEventListener("keydown", (event) => this.press(event));
    window.addEventListener("hashchange", () => this.follow());
    this.systemDark.addEventListener("change", () => this.show());
    new ResizeObserver(() => this.show()).observe(document.getElementById("scroller"));
  }

  get theme() {
    return this.state.theme ?? (this.systemDark.matches ? "dark" : "light");
  }

  set(changes) {
    Object.assign(this.state, changes);
    window.history.replaceState(null, "", this.state.write());
    this.show();
  }

  // The address was changed, or the browser went back.
  follow() {
    this.state.read(window.location.hash);
    this.search.set(this.state.query);
    this.show();
    this.view.scrollToRoot();
  }

  show() {
    const { state, controls } = this;
    document.documentElement.dataset.theme = this.theme;
    const { colour: by, column, profile, base } = state;
    this.colours.prepare({ by, column, profile, base, theme: this.theme });
    this.showControls();
    this.showPath();
    this.showSummary();
    this.showMatches();
    this.showLegend();
    if (this.selected !== null) this.details.setLine(this.details.describe(this.selected, state));
    this.view.show({ ...this.shown }, this);
    controls.canvas.setAttribute("aria-label", `Flame graph of ${formatType(this.model.types[column])}; arrow keys move, Enter zooms`);
  }

  // What the state says, for the view.
  get shown() {
    const { column, profile, base, root, flame, classes } = this.state;
    return { column, profile, base, root, flame, classes };
  }

  showControls() {
    const { state, controls } = this;
    controls.value.value = state.column;
    controls.colour.value = state.colour;
    controls.icicle.setAttribute("aria-pressed", !state.flame);
    controls.flame.setAttribute("aria-pressed", state.flame);
    controls.classes.setAttribute("aria-pressed", state.classes);
    if (controls.search.value !== state.query) controls.search.value = state.query;
    controls.time.value = state.time;
    const { name, time } = this.model.profiles[state.profile];
    const when = time === null ? "" : new Date(time).toLocaleString();
    controls.moment.textContent = `${state.time + 1} of ${state.moments}  ·  ${when || printable(name)}`;
    controls.moment.title = printable(name);
    controls.play.textContent = this.playing ? "❚❚" : "▶";
  }

  showPath() {
    const path = this.model.path(this.state.root);
    const parts = path.flatMap((node, depth) => {
      const button = element("button", this.model.name(node));
      button.title = this.model.place(node);
      button.addEventListener("click", () => this.zoom(node));
      return depth ? [element("span", "›"), button] : [button];
    });
    this.controls.path.replaceChildren(...parts);
    this.controls.path.scrollLeft = this.controls.path.scrollWidth;
  }

  showSummary() {
    const { model, state } = this;
    const type = model.types[state.column];
    const { name, time } = model.profiles[state.profile];
    const parts = [printable(name)];
    if (time !== null) parts.push(new Date(time).toLocaleString());
    const total = model.estimate(ROOT, state.profile, state.column);
    const interval = this.details.interval(total, type.unit);
    parts.push(`${formatType(type)} ${formatValue(total.value, type.unit)}${interval && ` (95 %: ${interval})`}`);
    if (state.base !== null && state.base !== state.profile) {
      const { delta } = model.growth(ROOT, state.profile, state.base, state.column);
      parts.push(`${formatGrowth(delta, type.unit)} since ${printable(model.profiles[state.base].name)}`);
    }
    this.controls.summary.textContent = parts.join("  ·  ");
    this.controls.summary.title = this.controls.summary.textContent;
  }

  showMatches() {
    const { model, state, search, controls } = this;
    controls.search.toggleAttribute("aria-invalid", false);
    controls.matches.title = "";
    if (search.error) {
      controls.search.setAttribute("aria-invalid", "true");
      controls.matches.textContent = "not a regexp";
      controls.matches.title = search.error;
    } else if (search.active) {
      const { value } = model.sum(state.profile, state.column);
      const { sum, count } = search.matched(state, value);
      controls.matches.textContent = count ? `${formatShare(sum, value[state.root]) || "0 %"} matched` : "no match";
      controls.matches.title = `${count} boxes, ${formatValue(sum, model.types[state.column].unit)}`;
    } else {
      controls.matches.textContent = "";
    }
  }

  showLegend() {
    const entries = this.colours.legend().map(({ colour, name, share }) => {
      const entry = element("span");
      const sample = element("i");
      sample.style.background = colour;
      entry.append(sample, element("b", name), share ? ` ${share}` : "");
      return entry;
    });
    this.controls.legend.replaceChildren(...entries);
  }

  // For the view: the name and the figure in a box, whether it is set back, and which boxes have an outline.
  label(node) {
    const { model, state } = this;
    const name = (model.isClass(node) ? "◇ " : "") + model.name(node);
    const { unit } = model.types[state.column];
    const { value } = model.sum(state.profile, state.column);
    if (state.colour !== "growth") return [name, formatValue(value[node], unit)];
    const { delta, sure } = model.growth(node, state.profile, state.base, state.column);
    return [sure ? `${delta > 0 ? "▲" : "▼"} ${name}` : name, formatGrowth(delta, unit)];
  }

  dims(node) {
    return this.search.active && (node === CROWD || !this.search.matching[node]);
  }

  outlined() {
    const style = getComputedStyle(document.documentElement);
    const outlined = [];
    if (this.hovered !== null) outlined.push([this.hovered, style.getPropertyValue("--text")]);
    if (this.selected !== null) outlined.push([this.selected, style.getPropertyValue("--accent")]);
    return outlined;
  }

  hover(event) {
    const node = this.view.nodeAt(event.clientX, event.clientY);
    this.controls.canvas.style.cursor = node === null ? "default" : "pointer";
    if (node !== this.hovered) {
      this.hovered = node;
      this.view.paint();
    }
    if (node === null) this.details.hide();
    else this.details.show(node, this.state, event.clientX, event.clientY);
  }

  leave() {
    this.hovered = null;
    this.details.hide();
    this.view.paint();
  }

  click(event) {
    const node = this.view.nodeAt(event.clientX, event.clientY);
    if (node !== null) this.zoom(node);
  }

  select(node) {
    this.selected = node;
    this.details.setLine(this.details.describe(node, this.state));
    this.view.scrollTo(node);
    this.view.paint();
  }

  // The browser's "back" goes back to what was zoomed into before.
  zoom(node) {
    if (node === this.state.root) return;
    this.details.hide();
    this.hovered = null;
    this.selected = node;
    this.state.root = node;
    window.history.pushState(null, "", this.state.write());
    this.show();
    this.view.scrollTo(node);
  }

  turn(flame) {
    this.set({ flame });
    this.view.scrollToRoot();
  }

  toggleClasses() {
    if (!this.model.hasClasses) return;
    const classes = !this.state.classes;
    const hidden = !classes && this.model.isClass(this.state.root);
    if (!classes && this.selected !== null && this.model.isClass(this.selected)) this.selected = null;
    this.set({ classes, root: hidden ? this.model.parent[this.state.root] : this.state.root });
  }

  toggleTheme() {
    this.set({ theme: this.theme === "dark" ? "light" : "dark" });
  }

  find(query) {
    this.search.set(query);
    this.set({ query });
  }

  // The matches that can be seen, row by row. If there is none, one is made visible.
  nextMatch(step, from = this.selected) {
    const found = this.search.active ? this.view.rows.flat().filter(({ node }) => node !== CROWD && !this.dims(node)) : [];
    if (!found.length) return this.zoomToMatch();
    const at = found.findIndex(({ node }) => node === from);
    const next = at < 0 ? (step > 0 ? 0 : found.length - 1) : (at + step + found.length) % found.length;
    this.select(found[next].node);
  }

  // Zooms to the caller of the first match that is too narrow to be seen, or to the match if it is so even there.
  zoomToMatch() {
    if (!this.search.active) return;
    const { value } = this.model.sum(this.state.profile, this.state.column);
    const { first } = this.search.matched(this.state, value);
    if (first === undefined) return;
    this.zoom(this.model.parent[first]);
    if (!this.view.find(first)) this.zoom(first);
    this.select(first);
  }

  step(by) {
    const time = this.state.time + by;
    if (time >= 0 && time < this.state.moments) this.set({ time });
  }

  togglePlay() {
    if (this.state.moments < 2) return;
    if (this.playing) {
      clearInterval(this.playing);
      this.playing = null;
      this.show();
      return;
    }
    this.playing = setInterval(() => {
      if (this.state.time === this.state.moments - 1) this.togglePlay();
      else this.step(1);
    }, PACE);
    this.set({ time: this.state.time === this.state.moments - 1 ? 0 : this.state.time });
  }

  next(list, current, by) {
    return list[(list.indexOf(current) + by + list.length) % list.length];
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.controls.keys.open) return;
    const { target } = event;
    if (target === this.controls.search) {
      if (event.key === "Escape") this.find("");
      if (event.key === "Escape" || event.key === "Enter") this.controls.canvas.focus();
      if (event.key === "Enter") this.nextMatch(1, null);
      return;
    }
    if (CONTROL_KEYS.some(([controls, keys]) => target.matches(controls) && keys.test(event.key))) return;
    const action = this.actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  get actions() {
    const move = (direction) => () => this.select(this.view.neighbour(this.selected ?? this.state.root, direction));
    const out = () => this.zoom(this.model.parent[this.state.root]);
    const { state } = this;
    const columns = this.model.types.map((_, column) => column);
    return {
      ArrowLeft: move("left"),
      ArrowRight: move("right"),
      ArrowUp: move("up"),
      ArrowDown: move("down"),
      Enter: () => this.zoom(this.selected ?? state.root),
      Escape: out,
      Backspace: out,
      Home: () => this.zoom(ROOT),
      "/": () => this.controls.search.select(),
      n: () => this.nextMatch(1),
      N: () => this.nextMatch(-1),
      v: () => this.set({ column: this.next(columns, state.column, 1) }),
      V: () => this.set({ column: this.next(columns, state.column, -1) }),
      c: () => this.set({ colour: this.next(state.colours, state.colour, 1) }),
      k: () => this.toggleClasses(),
      f: () => this.turn(!state.flame),
      "[": () => this.step(-1),
      "]": () => this.step(1),
      " ": () => this.togglePlay(),
      t: () => this.toggleTheme(),
      "?": () => this.controls.keys.showModal(),
    };
  }
}

// For the browser's console, too.
const flamegraph = new App(JSON.parse(document.getElementById("data").textContent));
