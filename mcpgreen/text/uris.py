"""URIs as clients send them, and `file://` URIs as paths. Pure functions; nothing here looks at the disk.

Rule: imported before the first answer, so it does without `re` and `urllib.parse` (3 ms).
"""

from __future__ import annotations

import os

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
UNRESERVED = frozenset(LETTERS + "0123456789-._~")
RESERVED = frozenset(":/?#[]@!$&'()*+,;=")
WITHOUT_ENCODING = UNRESERVED | RESERVED | {"%"}
ASCII_BUT_SPACE = frozenset(map(chr, range(128))) - {" "}
KEPT_IN_FILES = WITHOUT_ENCODING | {"\\"}  # which is refused, whether it is encoded or not
SCHEME_CHARACTERS = frozenset(LETTERS + "0123456789+-.")
HEX_DIGITS = frozenset("0123456789ABCDEFabcdef")
SAFE_BYTES = frozenset(map(ord, UNRESERVED | {"/"}))
_BYTES_BY_ESCAPE: dict[str, bytes] = {}
MAX_URI_CHARS = 8192
MAX_PATH_PARTS = 256  # each costs a look at the disk, for whoever wants to know where a path leads


def file_uri(path: str) -> str:
    """The URI of an absolute path, percent-encoded."""
    encoded = path.encode("utf-8", "surrogateescape")
    if SAFE_BYTES.issuperset(encoded):  # as nearly always, and there may be thousands of them
        return "file://" + path
    return "file://" + "".join(chr(byte) if byte in SAFE_BYTES else f"%{byte:02X}" for byte in encoded)


def is_within(path: str, directory: str) -> bool:
    """Whether a path is a directory or lies below it. Both absolute and free of symbolic links."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def scheme_of(uri: str) -> str:
    """The scheme in lower case, empty if there is none."""
    scheme, colon, _ = uri.partition(":")
    if not colon or scheme[:1] not in LETTERS or not SCHEME_CHARACTERS.issuperset(scheme):
        return ""
    return scheme.lower()


def problem_with(uri: str) -> str | None:
    """Why this is no absolute URI (RFC 3986) that we accept, as the end of a sentence; None if it is one.

    Square brackets are let through everywhere: only a host may hold them, but many clients write them in queries.
    """
    if not uri:
        return "it is empty"
    if len(uri) > MAX_URI_CHARS:
        return f"it is longer than {MAX_URI_CHARS} characters"
    scheme = scheme_of(uri)
    if not scheme:
        return "it must begin with a scheme, such as file: or https:"
    if scheme == "file":
        uri = with_encoded_text(uri)  # such as clients make by putting "file://" before a path
    if not WITHOUT_ENCODING.issuperset(uri):
        character = next(each for each in uri if each not in WITHOUT_ENCODING)
        is_plain = character.isascii() and character.isprintable()
        shown = repr(character) if is_plain else f"U+{ord(character):04X}"
        return f"the character {shown} must be percent-encoded"
    if uri.count("#") > 1:
        return "it has more than one #; percent-encode the others as %23"
    try:
        decoded = percent_decoded(uri)
    except ValueError as error:
        return str(error)
    # RFC 3986, 7.3: who does not expect raw data refuses it. No path, variable or argument of a script can hold it.
    return "it contains %00" if b"\0" in decoded else None


def with_encoded_text(uri: str) -> str:
    """A URI as people write it, with the spaces and letters encoded that no URI may hold; in that of a file also what
    else can only be part of a name, such as a lone %. Nothing else is mended."""
    is_file = scheme_of(uri) == "file"
    if is_file and "%" in uri:
        first, *pieces = uri.split("%")
        uri = first + "".join(f"%{each}" if _is_escape(each) else f"%25{each}" for each in pieces)
    kept = KEPT_IN_FILES if is_file else ASCII_BUT_SPACE
    if kept.issuperset(uri):
        return uri
    characters = {each: each for each in set(uri)}
    for each in characters.keys() - kept:
        if each.isprintable():
            characters[each] = f"%{each.encode().hex('%').upper()}"
    return "".join(map(characters.__getitem__, uri))


def _is_escape(piece: str) -> bool:
    """Whether what follows a % makes an escape of it."""
    return piece[:2] in _bytes_by_escape()


def _bytes_by_escape() -> dict[str, bytes]:
    """All that can follow a %, made when it is needed for the first time: a client can send thousands at once."""
    if not _BYTES_BY_ESCAPE:
        _BYTES_BY_ESCAPE.update((high + low, bytes.fromhex(high + low)) for high in HEX_DIGITS for low in HEX_DIGITS)
    return _BYTES_BY_ESCAPE


def percent_decoded(text: str) -> bytes:
    """The bytes behind an ASCII text. Raises ValueError for a % that no two hexadecimal digits follow."""
    if "%" not in text:
        return text.encode("ascii")
    bytes_by_escape = _bytes_by_escape()
    first, *escaped = text.split("%")
    decoded = [first.encode("ascii")]
    for piece in escaped:
        byte = bytes_by_escape.get(piece[:2])
        if byte is None:
            raise ValueError("each % must be followed by two hexadecimal digits; write %25 for % itself")
        decoded.append(byte + piece[2:].encode("ascii") if len(piece) > 2 else byte)
    return b"".join(decoded)


def path_of(uri: str, *, base: str) -> str:
    """The absolute path that a `file:` URI names, the inverse of `file_uri`. Symbolic links are not resolved.

    `file://./x` is x in `base`: older projects name their own files so. Raises ValueError with the reason, as the end
    of a sentence, for all that could be understood in two ways: other hosts, `..`, encoded separators, drive letters.
    """
    if scheme_of(uri) != "file":
        raise ValueError("it is not a file: URI")
    if uri.count("/") > MAX_PATH_PARTS:
        raise ValueError(f"its path has more than {MAX_PATH_PARTS} parts")
    uri = with_encoded_text(uri)
    rest = uri.partition(":")[2]
    if _begins_with_drive(rest):
        raise ValueError("it begins with a Windows drive, which this system does not have")
    if "\\" in rest:
        raise ValueError("the parts of a path are separated by /, never by a backslash")
    if "?" in rest or "#" in rest:
        raise ValueError("a file has neither query nor fragment; write %3F for ? and %23 for # in a name")
    if problem := problem_with(uri):
        raise ValueError(problem)
    directory, path = _start(rest, base)
    segments = map(_segment, path.split("/"))
    return os.path.join(directory, *(each for each in segments if each not in ("", ".")))


def _start(rest: str, base: str) -> tuple[str, str]:
    """The directory to start from, and the path from there, still encoded."""
    if not rest.startswith("//"):
        if not rest.startswith("/"):
            raise ValueError("a relative path needs the form file://./path")
        return "/", rest
    host, slash, path = rest[2:].partition("/")
    if not slash:
        raise ValueError("it names no path")
    if host == ".":
        return base, path
    if host.lower() not in ("", "localhost"):
        raise ValueError("it names another host; write file:///path for a file of this one")
    return "/", path


def _segment(encoded: str) -> str:
    # What is not UTF-8 is kept as the file system keeps it, so that each URI of `file_uri` leads back to its file.
    segment = percent_decoded(encoded).decode("utf-8", "surrogateescape")
    if segment == "..":
        raise ValueError("a path must not contain ..")
    if "/" in segment or "\\" in segment:
        raise ValueError("a name must not contain %2F or %5C, a separator in disguise")
    if not segment.isprintable() and any(character < " " or character == "\x7f" for character in segment):
        raise ValueError("a path must not contain control characters")
    return segment


def _begins_with_drive(rest: str) -> bool:
    """Whether `C:` or `c|` stands where the path begins, with any number of slashes before it."""
    start = rest.lstrip("/")[:5].replace("%3A", ":").replace("%3a", ":").replace("%7C", "|").replace("%7c", "|")
    return len(start) > 1 and start[0] in LETTERS and start[1] in ":|" and start[2:3] in ("", "/", "\\")
