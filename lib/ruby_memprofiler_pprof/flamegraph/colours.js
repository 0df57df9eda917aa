// What colour a box has, and what the colours mean. All scales suit the colour-blind: the categories
// are Paul Tol's light scheme, the growth goes from blue by way of grey to red.

const PAGE = { light: "#fbfbfc", dark: "#15171c" };
const PLAIN = "#d9dce3";
const KNOWN = new Map([["app", "#ee8866"], ["ruby", "#77aadd"]]);
const CATEGORIES = ["#44bb99", "#eedd88", "#ffaabb", "#99ddff", "#bbcc33", "#c7b2e8", "#c2b280"];
const GROWN = ["#f9c0ab", "#c4161c"];
const SHRUNK = ["#b3d4ea", "#0a63a8"];
const SAME = "#d9dce3";
const DARK_TEXT = "#14171f";
const LIGHT_TEXT = "#f5f6f9";

class Colours {
  constructor(model) {
    this.model = model;
    this.scales = new Map();
    this.mixed = new Map();
  }

  // Before boxes are drawn: how they are to be coloured.
  prepare({ by, column, profile, base, theme }) {
    Object.assign(this, { by, column, profile, base, theme });
    if (by !== "growth") this.scale = this.categories(by, column);
  }

  // Which categories there are, and which colour they have. The greatest have colours of their own.
  categories(by, column) {
    const key = `${by} ${column}`;
    if (!this.scales.has(key)) {
      const of = by === "gem" ? this.model.gems : this.model.mainClasses(column);
      const totals = new Map();
      for (let profile = 0; profile < this.model.values.length; profile += 1) {
        for (const [category, own] of this.shares(by, of, profile, column)) {
          totals.set(category, (totals.get(category) ?? 0) + own);
        }
      }
      const colours = new Map();
      const free = by === "gem" ? [...CATEGORIES] : [...CATEGORIES, ...KNOWN.values()];
      for (const [category] of [...totals].sort((a, b) => b[1] - a[1])) {
        if (category === 0) continue;
        const known = by === "gem" ? KNOWN.get(this.model.strings[category]) : undefined;
        const colour = known ?? free.shift();
        if (colour) colours.set(category, colour);
      }
      this.scales.set(key, { of, colours });
    }
    return this.scales.get(key);
  }

  // How much each category has itself, in one profile. What is in no class leaf is of no known class.
  shares(by, of, profile, column) {
    const shares = new Map();
    const { node, value } = this.model.values[profile][column];
    for (let index = 0; index < node.length; index += 1) {
      const category = by === "gem" || this.model.isClass(node[index]) ? of[node[index]] : 0;
      shares.set(category, (shares.get(category) ?? 0) + value[index]);
    }
    return shares;
  }

  fill(node) {
    if (node === CROWD || node === ROOT || this.model.isOther(node)) return this.tone(this.growthOrPlain(node));
    if (this.by === "growth") return this.tone(this.growth(node));
    return this.tone(this.scale.colours.get(this.scale.of[node]) ?? PLAIN);
  }

  growthOrPlain(node) {
    return this.by === "growth" && node !== CROWD ? this.growth(node) : PLAIN;
  }

  growth(node) {
    const { delta, relative, sure } = this.model.growth(node, this.profile, this.base, this.column);
    if (!sure) return SAME;
    const [weak, strong] = delta > 0 ? GROWN : SHRUNK;
    return mix(strong, weak, Math.round(Math.abs(relative) * 16) / 16);
  }

  // The same colour, on a dark page darker.
  tone(colour) {
    return this.theme === "dark" ? this.mix(colour, "#1c1f26", this.by === "growth" ? 0.72 : 0.56) : colour;
  }

  // A pale version, for what is not there now and what does not match.
  pale(colour) {
    return this.mix(colour, PAGE[this.theme], 0.28);
  }

  text(colour) {
    return luminance(colour) > 0.2 ? DARK_TEXT : LIGHT_TEXT;
  }

  mix(one, other, part) {
    const key = `${one}${other}${part}`;
    if (!this.mixed.has(key)) this.mixed.set(key, mix(one, other, part));
    return this.mixed.get(key);
  }

  // [{ colour, name, share }]
  legend() {
    if (this.by === "growth") {
      return [
        { colour: this.tone(GROWN[1]), name: "grows" },
        { colour: this.tone(SAME), name: "the same, or may be" },
        { colour: this.tone(SHRUNK[1]), name: "shrinks" },
      ];
    }
    const { of, colours } = this.scale;
    const shares = this.shares(this.by, of, this.profile, this.column);
    const total = this.model.sum(this.profile, this.column).value[ROOT];
    const entries = [...colours].map(([category, colour]) => ({
      colour: this.tone(colour),
      name: this.by === "gem" ? printable(this.model.strings[category]) : this.model.className(category),
      part: shares.get(category) ?? 0,
    }));
    const rest = total - entries.reduce((sum, { part }) => sum + part, 0);
    if (rest > 0) entries.push({ colour: this.tone(PLAIN), name: "other", part: rest });
    return entries
      .filter(({ part }) => part > 0)
      .map(({ colour, name, part }) => ({ colour, name, share: formatShare(part, total) }));
  }
}

function channels(colour) {
  return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
}

function mix(one, other, part) {
  const [a, b] = [channels(one), channels(other)];
  const mixed = a.map((channel, index) => Math.round(channel * part + b[index] * (1 - part)));
  return `#${mixed.map((channel) => channel.toString(16).padStart(2, "0")).join("")}`;
}

// https://www.w3.org/TR/WCAG21/#dfn-relative-luminance
function luminance(colour) {
  const [red, green, blue] = channels(colour).map((channel) => {
    const part = channel / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
