// What the browser keeps for us. It may have no room, or forbid it: then things last as long as the page.

const inMemory = new Map();

export function kept(key, storage = sessionStorage) {
  try {
    return JSON.parse(storage.getItem(key)) ?? inMemory.get(key);
  } catch {
    return inMemory.get(key);
  }
}

export function keep(key, value, storage = sessionStorage) {
  inMemory.set(key, value);
  try {
    storage.setItem(key, JSON.stringify(value));
  } catch {
    // Kept in memory.
  }
}
