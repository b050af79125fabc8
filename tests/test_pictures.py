"""The pictures of the pages: well-formed, small, from nowhere else, and true to what they show."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mcpgreen.cli.commands import COMMANDS

CHECKOUT = Path(__file__).resolve().parent.parent
PICTURES = sorted((CHECKOUT / "docs" / "pictures").glob("*.svg"))
RECORDINGS = [CHECKOUT / "docs" / "pictures" / f"demo-{theme}.svg" for theme in ("dark", "light")]
CHATS = [CHECKOUT / "docs" / "pictures" / f"chat-{theme}.svg" for theme in ("dark", "light")]
LEGIBLE_PX = 10.5  # on a phone whose page has 358 pixels for a picture
PHONE_PX = 358
SVG = "{http://www.w3.org/2000/svg}"


def lines_of(picture: Path) -> list[str]:
    groups = ElementTree.parse(picture).getroot().iter(f"{SVG}g")
    return [" ".join(str(text.text) for text in group.findall(f"{SVG}text")) for group in groups]


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.name)
def test_a_picture_is_well_formed_and_needs_nothing_from_elsewhere(picture: Path) -> None:
    text = picture.read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)

    assert root.tag == f"{SVG}svg"
    assert root.find(f"{SVG}title") is not None
    assert len(text.encode()) < 150_000
    assert re.findall(r"https?://[^\"']*", text) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"<script|<image|<foreignObject|@import|/home/|/work/|/tmp/", text)


@pytest.mark.parametrize("picture", RECORDINGS, ids=lambda path: path.name)
def test_the_commands_of_the_recording_exist(picture: Path) -> None:
    commands = [line.removeprefix("$ ").split() for line in lines_of(picture) if line.startswith("$ ")]
    targets = re.findall(r"^([a-z]+):", (CHECKOUT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    known = {command.name: command.text() for command in COMMANDS}

    assert commands[0] == ["make", "run"]
    assert "run" in targets
    for program, command, *words in commands[1:]:
        assert (CHECKOUT / program).is_file()
        assert [word for word in words if word.startswith("--") and word not in known[command]] == []


def test_the_recording_shows_every_scene_and_the_scripts_as_they_are() -> None:
    """If this fails, run `make picture` and commit the result."""
    scenes = (CHECKOUT / "scripts" / "demonstration" / "scenes.py").read_text(encoding="utf-8")
    greet = (CHECKOUT / "scripts" / "demonstration" / "tools" / "greet.sh").read_text(encoding="utf-8")
    titles = re.findall(r'screen\.title\("([^"]+)"\)', scenes)
    shown = lines_of(RECORDINGS[0])

    assert titles
    assert [line for line in (*titles, *greet.splitlines()) if line not in shown] == []


def test_both_recordings_are_of_one_session() -> None:
    dark, light = map(lines_of, RECORDINGS)

    assert dark == light


def test_the_chats_are_as_they_are_drawn(tmp_path: Path) -> None:
    """If this fails, run `python scripts/draw_chat.py` and commit the result."""
    subprocess.run([sys.executable, CHECKOUT / "scripts" / "draw_chat.py", tmp_path], check=True, timeout=60)

    assert [(tmp_path / chat.name).read_text("utf-8") for chat in CHATS] == [chat.read_text("utf-8") for chat in CHATS]


@pytest.mark.parametrize("picture", CHATS, ids=lambda path: path.name)
def test_a_chat_shows_the_script_of_the_first_page_and_its_result(picture: Path) -> None:
    page = (CHECKOUT / "README.md").read_text(encoding="utf-8").splitlines()
    texts = ElementTree.parse(picture).getroot().iter(f"{SVG}text")
    code = [str(text.text) for text in texts if text.get("class") == "code"]

    assert code
    assert [line for line in code if line not in page] == []


@pytest.mark.parametrize("picture", CHATS, ids=lambda path: path.name)
def test_a_chat_is_legible_on_a_phone_and_does_not_move(picture: Path) -> None:
    text = picture.read_text(encoding="utf-8")
    width = float(ElementTree.fromstring(text).attrib["width"])
    sizes = [float(size) for size in re.findall(r"(?:font:|font-size:)(\d+)px", text)]

    assert len(sizes) == 3
    assert min(sizes) * PHONE_PX / width >= LEGIBLE_PX
    assert "animation" not in text
