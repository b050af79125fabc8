"""What JSON is to the type checker."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]  # an object; what its members are is for whoever reads them to find out
