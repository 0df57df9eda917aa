// Figures and names as people read them.

const MULTIPLES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

function formatValue(value, unit) {
  if (unit === "nanoseconds") {
    const seconds = Math.abs(value) >= 1e9;
    return `${Number((value / (seconds ? 1e9 : 1e6)).toPrecision(3))} ${seconds ? "s" : "ms"}`;
  }
  if (unit !== "bytes") {
    const number = Math.round(value).toLocaleString("en-US");
    return unit === "count" ? number : `${number} ${unit}`;
  }
  let scaled = value;
  let multiple = 0;
  while (Math.abs(scaled) >= 1024 && multiple < MULTIPLES.length - 1) {
    scaled /= 1024;
    multiple += 1;
  }
  // Three digits of 999.5 would be 1.00e+3.
  return `${multiple === 0 ? Math.round(scaled) : scaled.toPrecision(Math.abs(scaled) >= 999.5 ? 4 : 3)} ${MULTIPLES[multiple]}`;
}

function formatGrowth(value, unit) {
  return `${value > 0 ? "+" : value < 0 ? "−" : "±"}${formatValue(Math.abs(value), unit)}`;
}

function formatShare(part, whole) {
  if (!whole) return "";
  const percent = (100 * part) / whole;
  return `${percent.toFixed(Math.abs(percent) >= 10 ? 1 : 2)} %`;
}

function formatType(type) {
  return printable(type.name.replaceAll("_", " "));
}

// Control characters, and those that would change the order or the look of what surrounds them, are shown as codes:
// names come from the profiled program, which can choose them freely.
const INVISIBLE = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

function printable(text) {
  return text.replace(INVISIBLE, (character) => `\\u{${character.charCodeAt(0).toString(16)}}`);
}

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}
