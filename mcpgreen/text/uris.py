"""URIs as clients send them, and `file://` URIs as paths. Pure functions; nothing here looks at the disk."""

from __future__ import annotations

import os
import re

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
UNRESERVED = frozenset(LETTERS + "0123456789-._~")
RESERVED = frozenset(":/?#[]@!$&'()*+,;=")
WITHOUT_ENCODING = UNRESERVED | RESERVED | {"%"}
ASCII_BUT_SPACE = frozenset(map(chr, range(128))) - {" "}
KEPT_IN_FILES = WITHOUT_ENCODING | {"\\"}  # which is refused, whether it is encoded or not
SCHEME_CHARACTERS = frozenset(LETTERS + "0123456789+-.")
DRIVE = r"/*[A-Za-z](:|\||%3[Aa]|%7[Cc])([/\\]|$)"  # C: or c| after any number of slashes
LONE_PERCENT = "%(?![0-9A-Fa-f]{2})"
MAX_URI_CHARS = 8192
MAX_PATH_PARTS = 256  # each costs a look at the disk when the path is resolved


def file_uri(path: str) -> str:
    """Return the URI of an absolute path, percent-encoded."""
    from urllib.parse import quote  # takes long to import, and a server with tools alone needs no URI

    return "file://" + quote(os.fsencode(path))


def is_within(path: str, directory: str) -> bool:
    """Tell whether a path is this directory or lies below it. Both are absolute and free of symbolic links."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def scheme_of(uri: str) -> str:
    """Return the scheme in lower case, empty if there is none."""
    scheme, colon, _ = uri.partition(":")
    if not colon or scheme[:1] not in LETTERS or not SCHEME_CHARACTERS.issuperset(scheme):
        return ""
    return scheme.lower()


def problem_with(uri: str) -> str | None:
    """Say why this is not an absolute URI (RFC 3986) that we accept, as the end of a sentence; None if it is one.

    Square brackets are accepted everywhere: only a host may hold them, but many clients write them in queries.
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
    # RFC 3986, 7.3: refuse raw data that is not expected. No path, variable or argument of a script can hold a NUL.
    return "it contains %00" if b"\0" in decoded else None


def with_encoded_text(uri: str) -> str:
    """Encode what people write into a URI although no URI may hold it: spaces and letters outside ASCII; in the URI of
    a file also what can only be part of a name, such as a lone %. Nothing else is corrected."""
    is_file = scheme_of(uri) == "file"
    if is_file:
        uri = re.sub(LONE_PERCENT, "%25", uri)
    kept = KEPT_IN_FILES if is_file else ASCII_BUT_SPACE
    if kept.issuperset(uri):
        return uri
    encoded = {each for each in set(uri) - kept if each.isprintable()}
    return "".join(f"%{each.encode().hex('%').upper()}" if each in encoded else each for each in uri)


def percent_decoded(text: str) -> bytes:
    """Decode an ASCII text to bytes. Raises ValueError for a % that no two hexadecimal digits follow."""
    if re.search(LONE_PERCENT, text):
        raise ValueError("each % must be followed by two hexadecimal digits; write %25 for % itself")
    from urllib.parse import unquote_to_bytes

    return unquote_to_bytes(text)


def path_of(uri: str, *, base: str) -> str:
    """Return the absolute path that a `file:` URI names, the inverse of `file_uri`. Symbolic links are not resolved.

    `file://./x` is x in `base`: older projects name their own files like this. Raises ValueError with the reason, as
    the end of a sentence, for everything that is ambiguous: other hosts, `..`, encoded separators, drive letters.
    """
    if scheme_of(uri) != "file":
        raise ValueError("it is not a file: URI")
    if uri.count("/") > MAX_PATH_PARTS:
        raise ValueError(f"its path has more than {MAX_PATH_PARTS} parts")
    uri = with_encoded_text(uri)
    rest = uri.partition(":")[2]
    if re.match(DRIVE, rest):
        raise ValueError("it begins with a Windows drive letter, but this is not a Windows system")
    if "\\" in rest:
        raise ValueError("the parts of a path are separated by /, never by a backslash")
    if "?" in rest or "#" in rest:
        raise ValueError("a file has neither query nor fragment; write %3F for ? and %23 for # in a name")
    if problem := problem_with(uri):
        raise ValueError(problem)
    directory, path = "/", rest
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if not slash:
            raise ValueError("it names no path")
        if host.lower() not in ("", "localhost", "."):
            raise ValueError("it names another host; write file:///path for a file on this one")
        directory = base if host == "." else "/"
    elif not rest.startswith("/"):
        raise ValueError("a relative path needs the form file://./path")
    segments = map(_segment, path.split("/"))
    return os.path.join(directory, *(each for each in segments if each not in ("", ".")))


def _segment(encoded: str) -> str:
    # Bytes that are not UTF-8 are kept as the file system keeps them, so that each URI of `file_uri` leads to its file.
    segment = percent_decoded(encoded).decode("utf-8", "surrogateescape")
    if segment == "..":
        raise ValueError("a path must not contain ..")
    if "/" in segment or "\\" in segment:
        raise ValueError("a name must not contain %2F or %5C, which are encoded separators")
    if not segment.isprintable() and any(character < " " or character == "\x7f" for character in segment):
        raise ValueError("a path must not contain control characters")
    return segment
