// What is shown, and how the address says so after its "#": value, colour, flame, classes, zoom, search, time, theme.

class State {
  constructor(model) {
    this.model = model;
    this.first = model.base ? 1 : 0;
    this.moments = model.profiles.length - this.first;
    this.reset();
  }

  reset() {
    Object.assign(this, {
      column: this.model.type,
      colour: this.comparable ? "growth" : "gem",
      flame: false,
      classes: false,
      root: ROOT,
      query: "",
      time: this.moments - 1,
      theme: null,
    });
  }

  // The profile that is shown, and the one to compare it with or null.
  get profile() {
    return this.first + this.time;
  }

  get base() {
    return this.comparable || this.moments > 1 ? 0 : null;
  }

  // Whether the page is there to compare: it was made with a base.
  get comparable() {
    return this.model.base;
  }

  get colours() {
    return ["gem", ...(this.model.hasClasses ? ["class"] : []), ...(this.base === null ? [] : ["growth"])];
  }

  // What is not valid is as if it were not there.
  read(hash) {
    this.reset();
    const given = new URLSearchParams(hash.replace(/^#/, ""));
    const number = (name, limit) => {
      const text = given.get(name);
      return /^\d{1,9}$/.test(text ?? "") && Number(text) < limit ? Number(text) : null;
    };
    const column = this.model.types.findIndex((type) => type.name === given.get("value"));
    if (column >= 0) this.column = column;
    if (this.colours.includes(given.get("colour"))) this.colour = given.get("colour");
    this.flame = given.get("flame") === "1";
    this.classes = this.model.hasClasses && given.get("classes") === "1";
    this.root = number("zoom", this.model.size) ?? ROOT;
    if (this.model.isClass(this.root)) this.classes = true;
    this.query = given.get("search") ?? "";
    this.time = number("time", this.moments) ?? this.time;
    if (["light", "dark"].includes(given.get("theme"))) this.theme = given.get("theme");
  }

  // Only what is not as it is at first.
  write() {
    const said = new URLSearchParams();
    const usual = new State(this.model);
    if (this.column !== usual.column) said.set("value", this.model.types[this.column].name);
    if (this.colour !== usual.colour) said.set("colour", this.colour);
    if (this.flame) said.set("flame", "1");
    if (this.classes) said.set("classes", "1");
    if (this.root !== ROOT) said.set("zoom", this.root);
    if (this.query) said.set("search", this.query);
    if (this.time !== usual.time) said.set("time", this.time);
    if (this.theme) said.set("theme", this.theme);
    return `#${said}`;
  }
}
