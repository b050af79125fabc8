"""Write results as JUnit XML, for CI servers.

The format has no standard. This is what both the schema of Jenkins' plugin and the older one of Ant's reports accept:
a suite for each file, with all its attributes, and its parts in the order properties, cases, system-out, system-err.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from datetime import datetime, timezone
from itertools import groupby
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from mcpgreen.errors import ProjectError
from mcpgreen.files.regular_files import replacing

if TYPE_CHECKING:
    from mcpgreen.cli.testing.running import Result

UNFIT = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # characters that XML cannot have
MAX_CHARS = 20_000  # of the text of a failure


def write_junit(path: str, results: Sequence[Result], *, began_at: float) -> None:
    """Raises ProjectError."""
    top = ElementTree.Element("testsuites")
    for number, (file, group) in enumerate(groupby(results, lambda result: result.test.shown_file)):
        top.append(_suite(number, file, list(group), began_at))
    ElementTree.indent(top)
    try:
        with replacing(path, mode=0o644) as stream:
            ElementTree.ElementTree(top).write(stream, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise ProjectError(path, f"it cannot be written: {error.strerror}") from error


def _suite(number: int, file: str, results: Sequence[Result], began_at: float) -> ElementTree.Element:
    at = datetime.fromtimestamp(began_at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    counts = {"tests": len(results), "failures": sum(result.outcome == "failed" for result in results), "errors": 0}
    counts |= {"skipped": sum(result.outcome == "skipped" for result in results)}
    attributes = {"id": number, "package": "mcpgreen", "name": file, "timestamp": at, "hostname": socket.gethostname()}
    attributes |= {**counts, "time": f"{sum(result.secs for result in results):.3f}"}
    suite = ElementTree.Element("testsuite", {name: _fit(str(value)) for name, value in attributes.items()})
    ElementTree.SubElement(suite, "properties")
    for result in results:
        about = {"name": result.test.name, "classname": result.test.shown_file, "time": f"{result.secs:.3f}"}
        case = ElementTree.SubElement(suite, "testcase", {name: _fit(value) for name, value in about.items()})
        if result.outcome == "skipped":
            ElementTree.SubElement(case, "skipped")
        elif result.problems:
            message = _fit(result.problems[0].partition("\n")[0])
            failure = ElementTree.SubElement(case, "failure", {"message": message, "type": "unexpected"})
            failure.text = _fit("\n".join([f"{file}:{result.test.line}", *result.problems, *result.stderr_lines]))
    for name in ("system-out", "system-err"):
        ElementTree.SubElement(suite, name)
    return suite


def _fit(text: str) -> str:
    return UNFIT.sub("\ufffd", text[:MAX_CHARS])
