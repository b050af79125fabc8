"""The fixtures of the suite, whose tools have names such as test_simple_text.py, are no tests of ours."""

from __future__ import annotations

collect_ignore = ["project"]
