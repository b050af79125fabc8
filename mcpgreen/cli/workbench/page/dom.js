// Makes elements. Rule: text from elsewhere gets into the document here, as text nodes and properties, and nowhere as HTML.

/** `h("button.quiet", { testid: "run", onclick: run }, "Run")`. Children may be nested arrays; null and false are left out. */
export function h(tag, properties = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  if (classes.length) element.classList.add(...classes);
  assign(element, properties);
  element.append(...present(children));
  return element;
}

export function button(look, testid, onclick, ...content) {
  return h(look ? `button.${look}` : "button", { type: "button", testid, onclick }, ...content);
}

export function assign(element, properties) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined) continue;
    if (name === "testid") element.dataset.testid = value;
    else if (name === "class") element.classList.add(...value.split(" ").filter(Boolean));
    else if (name === "style") for (const [key, each] of Object.entries(value)) element.style.setProperty(key, each);
    else if (/^(aria-|data-|role$|for$|list$|popovertarget)/.test(name)) setAttribute(element, name, value);
    else if (name in element) element[name] = value;
    else setAttribute(element, name, value);
  }
  return element;
}

export function setAttribute(element, name, value) {
  if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else element.setAttribute(name, value === true && !name.startsWith("aria-") ? "" : String(value));
}

export function fill(element, ...children) {
  element.replaceChildren(...present(children));
  return element;
}

function present(children) {
  return children.flat(Infinity).filter((each) => each !== null && each !== undefined && each !== false);
}

let lastId = 0;
export function freshId(prefix) {
  lastId += 1;
  return `${prefix}-${lastId}`;
}

/** A custom element that is built once, and whose listeners end when it leaves the document. */
export class Part extends HTMLElement {
  #isBuilt = false;
  #gone = null;

  connectedCallback() {
    this.#gone = new AbortController();
    this.prepare();
    this.connected();
  }

  /** Builds what is inside, if it was not built; for those who need it before it is in the document. */
  prepare() {
    if (this.#isBuilt) return;
    this.#isBuilt = true;
    this.build();
  }

  disconnectedCallback() {
    this.#gone.abort();
  }

  build() {}

  connected() {}

  listen(target, type, listener) {
    target.addEventListener(type, listener, { signal: this.#gone.signal });
  }

  every(ms, work) {
    const ticking = setInterval(work, ms);
    this.#gone.signal.addEventListener("abort", () => clearInterval(ticking));
  }
}

/** A dialog with a title and a button that closes it; a click beside it closes it, too. */
export function dialogOf(title, testid, ...content) {
  const id = freshId("title");
  return h("dialog", { "aria-labelledby": id, testid: `${testid}-dialog`, onclick: ({ target, currentTarget }) => target === currentTarget && target.close() },
    h("header", {}, h("h2", { id }, title), h("form", { method: "dialog" }, h("button.quiet", { testid: `${testid}-close` }, "Close"))), content);
}

/** Calls `work` in the next frame, once, however often it was asked for. */
export function inNextFrame(work) {
  let isAsked = false;
  return () => {
    if (isAsked) return;
    isAsked = true;
    requestAnimationFrame(() => {
      isAsked = false;
      work();
    });
  };
}

/** Radio buttons that look like one switch. `options` are [value, label] pairs. */
export function segmented(label, options, chosen, change, testid) {
  const name = freshId("choice");
  const node = h("div.segmented", { role: "radiogroup", "aria-label": label, testid });
  const inputs = options.map(([value, text]) => {
    const input = h("input", {
      type: "radio", name, checked: value === chosen, testid: testid && `${testid}-${value}`,
      onchange: () => change(value),
    });
    node.append(h("label", {}, input, h("span", {}, text)));
    return [value, input];
  });
  node.choose = (value) => inputs.forEach(([each, input]) => { input.checked = each === value; });
  return node;
}

/** Tabs with the keyboard of the ARIA pattern. `tabs` are {id, label, count?, build}; a page is built when first shown. */
export function tabs(label, list, { chosen = list[0]?.id, testid, change } = {}) {
  const bar = h("div.tabs", { role: "tablist", "aria-label": label });
  const page = h("div.tab-page", { role: "tabpanel", id: freshId("page"), tabIndex: -1 });
  const node = h("div.tabbed", {}, bar, page);
  const built = new Map();
  const buttons = list.map(({ id, label: text, count }) => h("button", {
    type: "button", role: "tab", id: freshId("tab"), "aria-controls": page.id, testid: testid && `${testid}-${id}`,
    onclick: () => node.show(id),
    onkeydown: (event) => step(event, id),
  }, text, count === undefined ? null : h("span.count", {}, String(count))));
  bar.append(...buttons);

  node.show = (id) => {
    node.shown = id;
    list.forEach((each, index) => {
      buttons[index].setAttribute("aria-selected", String(each.id === id));
      buttons[index].tabIndex = each.id === id ? 0 : -1;
      if (each.id !== id) return;
      page.setAttribute("aria-labelledby", buttons[index].id);
      if (!built.has(id)) built.set(id, each.build());
      fill(page, built.get(id));
    });
    change?.(id);
  };
  function step(event, id) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    const at = (list.findIndex((each) => each.id === id) + by + list.length) % list.length;
    node.show(list[at].id);
    buttons[at].focus();
  }
  if (chosen) node.show(chosen);
  return node;
}

let spoken = null;
/** A short message that disappears, and that screen readers say. */
export function announce(text, { isError = false } = {}) {
  spoken?.remove();
  spoken = h("div.toast", { role: isError ? "alert" : "status", class: isError ? "bad" : "", testid: "toast" }, text);
  (document.querySelector("dialog:modal") || document.body).append(spoken);
  const own = spoken;
  setTimeout(() => own.remove(), isError ? 8000 : 3000);
}

export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    announce(`Copied: ${what}`);
  } catch {
    announce("The browser does not let this page use the clipboard.", { isError: true });
  }
}
