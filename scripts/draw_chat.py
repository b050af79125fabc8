"""Draw a script, and a chat that uses it as a tool, once for light and once for dark pages.

    python scripts/draw_chat.py [DIRECTORY]

Writes chat-light.svg and chat-dark.svg to DIRECTORY (docs/pictures/ by default). The script and its result are those of
the README. The picture is narrow, so that it can be read on a phone, and it does not move.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
SCRIPT = ("#!/bin/sh", '# mcp: {"description": "Show my tasks."}', "cat todo.txt")
QUESTION = ("What should I do first today?",)
RESULT = ("Renew the certificate by Friday", "Water the plants")
ANSWER = ("Renew the certificate: it is due by Friday.", "The plants can wait.")

WIDTH, MARGIN, PADDING, GAP = 480, 16, 14, 18
LINE, RADIUS = 24, 10


class Palette(NamedTuple):
    page: str
    border: str
    card: str
    text: str
    faint: str
    green: str
    on_green: str


PALETTES = {
    "light": Palette("#ffffff", "#d0d7de", "#f6f8fa", "#1f2328", "#59636e", "#1a7f37", "#ffffff"),
    "dark": Palette("#0d1117", "#3d444d", "#161b22", "#e6edf3", "#9198a1", "#238636", "#ffffff"),
}
STYLE = """text{{font:17px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:{text}}}
.code{{font:16px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre}}
.faint{{font-size:15px;fill:{faint}}}.strong{{font-weight:600}}.said{{fill:{on_green}}}
.card{{fill:{card};stroke:{border}}}.green{{fill:{green}}}.line{{fill:none;stroke:{green};stroke-width:2.5}}"""


class Drawing:
    """The parts of the picture, from the top to the bottom."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.bottom = MARGIN

    def text(self, x: float, y: float, words: str, style: str = "", anchor: str = "start") -> None:
        attributes = f'x="{x:g}" y="{y:g}" class="{style}" text-anchor="{anchor}"'
        self.parts.append(f"<text {attributes}>{escape(words)}</text>")

    def box(self, left: float, width: float, height: float, style: str) -> None:
        place = f'x="{left:g}" y="{self.bottom:g}" width="{width:g}" height="{height:g}"'
        self.parts.append(f'<rect {place} rx="{RADIUS}" class="{style}"/>')

    def card(self, title: str, note: str, lines: tuple[str, ...]) -> None:
        """A box over the whole width: a title, a note at its right, and lines of code."""
        height = (len(lines) + 1) * LINE + 2 * PADDING
        self.box(MARGIN, WIDTH - 2 * MARGIN, height, "card")
        first = self.bottom + PADDING + 16
        self.text(MARGIN + PADDING, first, title, "strong")
        self.text(WIDTH - MARGIN - PADDING, first, note, "faint", "end")
        for index, line in enumerate(lines, 1):
            self.text(MARGIN + PADDING, first + index * LINE + 3, line, "code")
        self.bottom += height + GAP

    def arrow(self, words: str) -> None:
        x, top = MARGIN + 2 * PADDING, self.bottom - GAP + 6
        self.parts.append(f'<path d="M{x} {top}v38m-8-8 8 8 8-8" class="line"/>')
        self.text(x + 24, top + 24, words, "faint")
        self.bottom = top + 38 + 10

    def question(self, lines: tuple[str, ...]) -> None:
        """What the person says, at the right."""
        width, height = 290, len(lines) * LINE + 2 * PADDING - 6
        self.box(WIDTH - MARGIN - width, width, height, "green")
        for index, line in enumerate(lines, 1):
            self.text(WIDTH - MARGIN - width / 2, self.bottom + 6 + index * LINE, line, "said", "middle")
        self.bottom += height + GAP

    def answer(self, lines: tuple[str, ...]) -> None:
        for index, line in enumerate(lines, 1):
            self.text(MARGIN + PADDING, self.bottom + index * LINE - 4, line)
        self.bottom += len(lines) * LINE + GAP


def picture(palette: Palette) -> str:
    drawing = Drawing()
    drawing.card("tools/todo.sh", "your script", SCRIPT)
    drawing.arrow("is a tool in your chat, editor or agent")
    drawing.question(QUESTION)
    drawing.card("✓ todo", "called by the model", RESULT)
    drawing.answer(ANSWER)
    height = drawing.bottom - GAP + MARGIN
    frame = f'<rect x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1:g}" rx="{RADIUS}" fill="{palette.page}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" role="img">',
            "<title>A script of three lines, and a chat whose model calls it as a tool</title>",
            f"<style>\n{STYLE.format(**palette._asdict())}\n</style>",
            f'{frame} stroke="{palette.border}"/>',
            *drawing.parts,
            "</svg>\n",
        ]
    )


def main(arguments: list[str]) -> int:
    directory = Path(arguments[0]) if arguments else PICTURES
    for name, palette in PALETTES.items():
        (directory / f"chat-{name}.svg").write_text(picture(palette), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
