"""What the Python tools of the benchmark do, as functions: for the peers, which call them in their own process."""

from __future__ import annotations

import base64
import collections
import csv
import datetime
import hashlib
import io
import json
import math
import re
import textwrap

import yaml


def hello(name: str) -> str:
    return f"Hello, {name}!"


def marked(name: str) -> str:
    """As a script it is a function with a mark, and calls nothing of the SDK itself."""
    return f"Hello, {name}!"


def plain(name: str) -> str:
    """As a script it prints, and does not look at its arguments."""
    return "Hello!"


def ten(name: str) -> str:
    """As a script it imports ten modules of the standard library; this call needs three of them."""
    return f"{datetime.date(2026, 7, 28).isoformat()} {json.dumps([name])} {math.floor(2.5)}"


def work(name: str) -> str:
    """With something of all ten."""
    digest = hashlib.sha256(base64.b64encode(name.encode())).hexdigest()
    row = io.StringIO()
    csv.writer(row).writerow([name, digest[:8], math.floor(2.5)])
    letters = collections.Counter(re.findall(r"\w", name))
    day = datetime.date(2026, 7, 28).isoformat()
    return textwrap.shorten(f"{day} {row.getvalue().strip()} {json.dumps(letters)}", 200)


def settings(name: str) -> str:
    """With a package that is not of the standard library."""
    return str(yaml.safe_dump({"name": name, "values": yaml.safe_load("[1, 2, 3]")}))


FUNCTIONS = {"hello": hello, "marked": marked, "plain": plain, "ten": ten, "work": work, "settings": settings}
