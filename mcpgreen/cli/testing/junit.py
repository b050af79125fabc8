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
from xml.etree import ElementTree

from mcpgreen.cli.testing.running import Result
from mcpgreen.errors import ProjectError
from mcpgreen.files.regular_files import replacing

UNFIT = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # characters that XML cannot have
MAX_CHARS = 20_000  # of the text of a failure


def write_junit(path: str, results: Sequence[Result], *, began_at: float) -> None:
    """Raises ProjectError."""
    top = ElementTree.Element("testsuites")
    about = {"package": "mcpgreen", "hostname": socket.gethostname(), "errors": "0"}
    about["timestamp"] = datetime.fromtimestamp(began_at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    for number, (file, group) in enumerate(groupby(results, lambda result: result.test.shown_file)):
        done = list(group)
        about |= {"id": str(number), "name": file, "time": f"{sum(result.outcome.secs for result in done):.3f}"}
        about |= {"tests": str(len(done)), "failures": str(sum(bool(result.problems) for result in done))}
        suite = ElementTree.SubElement(top, "testsuite", about)
        ElementTree.SubElement(suite, "properties")
        for result in done:
            case = ElementTree.SubElement(suite, "testcase", name=result.test.name, classname=file)
            case.set("time", f"{result.outcome.secs:.3f}")
            if result.problems:
                failure = ElementTree.SubElement(case, "failure", message=result.lines[0], type="unexpected")
                failure.text = "\n".join([f"{file}:{result.test.line}", *result.lines])[:MAX_CHARS]
        ElementTree.SubElement(suite, "system-out")
        ElementTree.SubElement(suite, "system-err")
    ElementTree.indent(top)
    text = ElementTree.tostring(top, encoding="unicode")
    try:
        with replacing(path, mode=0o644) as stream:
            stream.write(UNFIT.sub("\ufffd", text).encode())
    except OSError as error:
        raise ProjectError(path, f"it cannot be written: {error.strerror}") from error
