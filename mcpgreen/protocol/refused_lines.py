"""Who waits for an answer to a line that we do not parse, as far as its ends tell.

Clients write the id of a request first, or last of all. Anywhere else it is not sought: a text in the arguments may
look like an id. What has no method is an answer to a request of ours, and needs none.
"""

from __future__ import annotations

import re

from mcpgreen.text import jsontext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mcpgreen.protocol.messages import RequestId

_ID = rb'("[^"\\]{0,200}"|-?[0-9]{1,18})'
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"\s*,\s*'
_ID_FIRST = re.compile(
    rb"\s*\{\s*(?:" + _VERSION + rb')?"id"\s*:\s*' + _ID + rb"\s*,\s*(?:" + _VERSION + rb')?"method"\s*:'
)
_METHOD_FIRST = re.compile(rb"\s*\{\s*(?:" + _VERSION + rb')?"method"\s*:')
_ID_LAST = re.compile(rb',\s*"id"\s*:\s*' + _ID + rb'\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')


def request_id_in(head: bytes, tail: bytes) -> RequestId | None:
    """The id, if these are the ends of a request."""
    found = _ID_FIRST.match(head) or (_METHOD_FIRST.match(head) and _ID_LAST.search(tail))
    if not found:
        return None
    try:
        id: RequestId = jsontext.loads(found.group(1))
    except ValueError:
        return None
    return id
