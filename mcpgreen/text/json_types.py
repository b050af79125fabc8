"""What JSON is to the type checker."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]  # an object, whose members have yet to be checked
