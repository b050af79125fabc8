"""JSON types for the type checker."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]  # an object; its members have not been checked
