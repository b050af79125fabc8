// A text as it is, cut where it is long. Control characters are visible, so that nothing in it can colour or hide anything.

import { button, copy, fill, h } from "./dom.js";
import { bytes, count, visible } from "./format.js";

const FIRST_CHARACTERS = 24_000;
const MORE_CHARACTERS = 100_000;
const MOST_CHARACTERS = 1_000_000; // more makes browsers slow; the rest can be saved

export function textView(text, { label = "Text", testid = "text" } = {}) {
  let shown = 0;
  const page = h("pre.text", { tabIndex: 0, role: "region", "aria-label": label, testid });
  const foot = h("div.text-foot");

  function showMore(length) {
    const end = endOfPiece(text, shown + length);
    page.append(document.createTextNode(visible(text.slice(shown, end))));
    shown = end;
    const left = text.length - shown;
    foot.hidden = left <= 0;
    fill(foot,
      h("span", {}, `${count(left, "character")} more (${bytes(text.length)} in all)`),
      shown < MOST_CHARACTERS && button("quiet", `${testid}-more`, () => showMore(MORE_CHARACTERS), "Show more"),
      button("quiet", `${testid}-save`, () => save(text), "Save all"));
  }
  showMore(FIRST_CHARACTERS);
  return h("div.text-view", {}, page, foot);
}

export function copyButton(text, what, testid) {
  return button("quiet", testid, () => copy(typeof text === "function" ? text() : text, what), "Copy");
}

/** A little earlier, at the end of a line, and never in the middle of a character. */
function endOfPiece(text, end) {
  if (end >= text.length) return text.length;
  const line = text.lastIndexOf("\n", end);
  if (line > end - 2000) return line + 1;
  const isHalf = text.charCodeAt(end) >= 0xdc00 && text.charCodeAt(end) <= 0xdfff;
  return isHalf ? end + 1 : end;
}

function save(text) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  h("a", { href: address, download: "output.txt" }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
