"""Record a command at a terminal, and write it as an animated SVG, once for dark and once for light pages.

    python scripts/record_terminal.py NAME COMMAND...

writes docs/pictures/NAME-dark.svg and NAME-light.svg. The command runs for real, at a terminal of 92 columns; what it
prints is shown at the pace at which it came. The SVG moves by CSS alone and needs nothing from elsewhere. Somebody who
wants no motion sees the first screen.

Understood are text, newline, carriage return and colours, which is all that the demonstration uses.
"""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import struct
import sys
import termios
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
COLUMNS, ROWS = 92, 24
CELL_WIDTH, LINE_HEIGHT, MARGIN = 8.4, 19, 16
FRAME_SECS = 0.08
LAST_SECS = 5.0
TOKENS = re.compile(r"\x1b\[([0-9;]*)m|(\r)|(\n)|([^\x1b\r\n]+)")
UNFINISHED = re.compile(r"\x1b(\[[0-9;]*)?$")
# The colours that the demonstration uses, by their SGR numbers; 0 is plain text.
PALETTES = {
    "dark": {"background": "#0d1117", "0": "#c9d1d9", "1": "#f0f6fc", "2": "#8b949e", "32": "#3fb950"}
    | {"33": "#d29922", "35": "#bc8cff", "36": "#39c5cf"},
    "light": {"background": "#f6f8fa", "0": "#24292f", "1": "#1f2328", "2": "#59636e", "32": "#1a7f37"}
    | {"33": "#9a6700", "35": "#8250df", "36": "#1b7c83"},
}


class Chunk(NamedTuple):
    at_secs: float
    text: str


class Cell(NamedTuple):
    character: str
    colour: str


class State(NamedTuple):
    """What a row shows from one moment until another, or to the end."""

    row: int
    cells: tuple[Cell, ...]
    from_secs: float
    until_secs: float | None


class Terminal:
    """Rows of coloured cells; there is no end to the rows, the picture scrolls."""

    def __init__(self) -> None:
        self.rows: list[list[Cell]] = [[]]
        self.row = self.column = 0
        self._colour = "0"
        self._unfinished = ""

    def feed(self, text: str) -> None:
        text = self._unfinished + text
        unfinished = UNFINISHED.search(text)
        self._unfinished = unfinished[0] if unfinished else ""
        text = text.removesuffix(self._unfinished)
        for sgr, carriage, newline, plain in TOKENS.findall(text):
            if carriage:
                self.column = 0
            elif newline:
                self.row, self.column = self.row + 1, 0
                self.rows += [[] for _ in range(self.row + 1 - len(self.rows))]
            elif plain:
                for character in plain:
                    self._put(Cell(character, self._colour))
            else:
                self._colour = sgr or "0"

    def _put(self, cell: Cell) -> None:
        cells = self.rows[self.row]
        cells += [Cell(" ", "0")] * (self.column + 1 - len(cells))
        cells[self.column] = cell
        self.column += 1


def record(command: list[str]) -> list[Chunk]:
    """Run a command at a terminal of its own; what it printed and when. It has to succeed."""
    pid, terminal = pty.fork()
    if pid == 0:
        time.sleep(0.1)  # until the size is set
        # As if somebody typed it: also where make runs this script.
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "NO_COLOR"))}
        os.execvpe(command[0], command, {**kept, "TERM": "xterm-256color"})
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    began_at = time.monotonic()
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    chunks = []
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # the other side is closed
            break
        if not data:
            break
        chunks.append(Chunk(time.monotonic() - began_at, decoder.decode(data)))
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    if status:
        raise SystemExit(f"{' '.join(command)} ended with status {os.waitstatus_to_exitcode(status)}")
    return chunks


def states_of(chunks: Iterable[Chunk]) -> Iterator[State]:
    """What each row shows and when, looked at frame by frame."""
    terminal = Terminal()
    shown: dict[int, tuple[float, tuple[Cell, ...]]] = {}
    for at_secs, text in frames_of(chunks):
        terminal.feed(text)
        for row, cells in enumerate(map(tuple, terminal.rows)):
            since, before = shown.get(row, (at_secs, ()))
            if cells == before:
                continue
            if before:
                yield State(row, before, since, at_secs)
            shown[row] = (at_secs, cells)
    for row, (since, cells) in shown.items():
        yield State(row, cells, since, None)


def frames_of(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """The same text in fewer pieces: what came within one frame is one."""
    frame, text = 0, ""
    for chunk in chunks:
        this = int(chunk.at_secs / FRAME_SECS)
        if this != frame and text:
            yield Chunk(frame * FRAME_SECS, text)
            text = ""
        frame, text = this, text + chunk.text
    if text:
        yield Chunk(frame * FRAME_SECS, text)


def svg(states: Sequence[State], palette: dict[str, str], title: str) -> str:
    """The recording as a picture."""
    width, height = COLUMNS * CELL_WIDTH + 2 * MARGIN, ROWS * LINE_HEIGHT + 2 * MARGIN
    total_secs = max(state.until_secs or state.from_secs for state in states) + LAST_SECS
    rules, names, lines = [], dict[tuple[float, float | None], str](), []
    for state in states:
        when = (state.from_secs, state.until_secs)
        if when not in names:
            names[when] = f"t{len(names)}"
            rules.append(visibility_rule(names[when], when, total_secs))
        lines.append(f'<g class="{names[when]}">{"".join(text_of(state))}</g>')
    colours = [f".c{name}{{fill:{value}}}" for name, value in palette.items() if name != "background"]
    rules += [scroll_rule(states, total_secs), ".c1{font-weight:bold}", *colours]
    rules.append("@media (prefers-reduced-motion:reduce){g{animation:none!important}}")
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" role="img">',
            f"<title>{escape(title)}</title>",
            "<style>",
            "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre}",
            *rules,
            "</style>",
            f'<clipPath id="screen"><path d="M0 {MARGIN}H{width:g}V{height - MARGIN:g}H0z"/></clipPath>',
            f'<rect width="{width:g}" height="{height:g}" rx="8" fill="{palette["background"]}"/>',
            '<g clip-path="url(#screen)"><g class="scroll">',
            *lines,
            "</g></g>",
            "</svg>",
            "",
        ]
    )


def visibility_rule(name: str, when: tuple[float, float | None], total_secs: float) -> str:
    from_secs, until_secs = when
    # A state that another one replaces is hidden where nothing moves.
    at_rest = "" if until_secs is None else "opacity:0;"
    steps = f"0%{{opacity:0}}{100 * from_secs / total_secs:.2f}%{{opacity:1}}"
    if until_secs is not None:
        steps += f"{100 * until_secs / total_secs:.2f}%{{opacity:0}}"
    return f".{name}{{{at_rest}animation:{name} {total_secs:.1f}s step-end infinite}}@keyframes {name}{{{steps}}}"


def scroll_rule(states: Iterable[State], total_secs: float) -> str:
    steps, top = "", 0
    for state in sorted(states, key=lambda state: (state.from_secs, state.row)):
        # The row behind the last one is the cursor's.
        if (needed := state.row + 2 - ROWS) > top:
            top = needed
            steps += f"{100 * state.from_secs / total_secs:.2f}%{{transform:translateY({-top * LINE_HEIGHT}px)}}"
    return (
        f".scroll{{animation:scroll {total_secs:.1f}s step-end infinite}}"
        f"@keyframes scroll{{0%{{transform:translateY(0)}}{steps}}}"
    )


def text_of(state: State) -> Iterator[str]:
    """A row as texts of one colour each; their lengths are set, so that every font keeps the columns."""
    y = MARGIN + state.row * LINE_HEIGHT + 14
    column = 0
    while column < len(state.cells):
        colour, end = state.cells[column].colour, column
        while end < len(state.cells) and state.cells[end].colour == colour:
            end += 1
        text = "".join(cell.character for cell in state.cells[column:end])
        begin = column + len(text) - len(text.lstrip())
        if shown := text.strip():
            x, length = MARGIN + begin * CELL_WIDTH, len(shown) * CELL_WIDTH
            place = f'x="{x:.1f}" y="{y}" textLength="{length:.1f}" lengthAdjust="spacingAndGlyphs"'
            yield f'<text class="c{colour}" {place}>{escape(shown)}</text>'
        column = end


def main(arguments: list[str]) -> int:
    name, *command = arguments
    prompt = Chunk(0.0, f"$ {' '.join(command)}\r\n")
    chunks = [prompt, *(Chunk(chunk.at_secs + 0.6, chunk.text) for chunk in record(command))]
    states = list(states_of(chunks))
    PICTURES.mkdir(parents=True, exist_ok=True)
    for theme, palette in PALETTES.items():
        path = PICTURES / f"{name}-{theme}.svg"
        path.write_text(svg(states, palette, f"A terminal: {' '.join(command)}"), encoding="utf-8")
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
