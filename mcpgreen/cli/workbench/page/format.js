// Figures, times and strange characters, as people read them. Pure functions.

export function milliseconds(ms) {
  if (ms === undefined || ms === null || Number.isNaN(ms)) return "–";
  if (ms < 0.005) return "0 ms";
  if (ms < 10) return `${ms.toFixed(ms < 1 ? 2 : 1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor(seconds / 60) % 60} min`;
}

export function bytes(count) {
  if (count === undefined || count === null) return "–";
  if (count < 1024) return `${count} B`;
  const units = ["KiB", "MiB", "GiB"];
  let unit = -1;
  while (count >= 1023.5 && unit < units.length - 1) {
    count /= 1024;
    unit += 1;
  }
  return `${count < 10 ? count.toFixed(1) : Math.round(count)} ${units[unit]}`;
}

export const count = (number, one, many = `${one}s`) => `${grouped(number)} ${number === 1 ? one : many}`;

export const grouped = (number) => number.toLocaleString("en-US");

/** 12:04:31, or with milliseconds. `at` is in seconds since 1970. */
export function clock(at, { isExact = false } = {}) {
  const date = new Date(at * 1000);
  const text = [date.getHours(), date.getMinutes(), date.getSeconds()].map(twoDigits).join(":");
  return isExact ? `${text}.${String(date.getMilliseconds()).padStart(3, "0")}` : text;
}

export function since(at, now = Date.now() / 1000) {
  const seconds = Math.max(0, Math.round(now - at));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  return count(Math.floor(seconds / 86_400), "day");
}

const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f]|[\u202a-\u202e\u2066-\u2069]/g;

/** Control characters become visible signs: ESC is ␛. Nothing in a text can then move, colour or reorder what is around it. */
export function visible(text) {
  return text.replace(/\r\n/g, "\n").replace(CONTROL, (character) => {
    const code = character.charCodeAt(0);
    if (code === 0x7f) return "␡";
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : "�";
  });
}

export const shortened = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

/** Words as a line for a shell. */
export const shellLine = (words) => words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`)).join(" ");

const twoDigits = (number) => String(number).padStart(2, "0");
