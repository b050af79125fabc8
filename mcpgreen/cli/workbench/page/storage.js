// What the browser keeps for us. It may have no room, or forbid it: then things last as long as the page.

const inMemory = new Map();

export function kept(key) {
  try {
    return JSON.parse(localStorage.getItem(key)) ?? inMemory.get(key);
  } catch {
    return inMemory.get(key);
  }
}

export function keep(key, value) {
  inMemory.set(key, value);
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // Kept in memory.
  }
}
