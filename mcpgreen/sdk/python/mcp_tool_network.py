"""Try again, and fetch from the network within limits. A part of `mcp_tool`, loaded on demand.

The https provider of the server does the fetching, as a program. It checks hosts, addresses, redirects, size and time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from subprocess import DEVNULL, PIPE, CompletedProcess, run
from typing import Any, TypeVar, overload

import mcp_tool

__all__ = ["download_safe", "download_safe_or_fail", "with_retry"]

Json = dict[str, Any]
T = TypeVar("T")

FINAL_STATUSES = (0, 1, 2)  # success, failure, wrong usage: another try would end the same way
MAX_TIMEOUT_SECS = 60
# The exit statuses of a provider, and whether another try may help.
PROVIDER_ENDINGS = {
    4: ("host_blocked", False),
    5: ("network_error", True),
    6: ("size_exceeded", False),
    7: ("redirect", False),
}


@overload
def with_retry(
    attempts: int, delay_secs: float, operation: Sequence[str], *, retry_on: tuple[type[Exception], ...] = ...
) -> CompletedProcess[str]: ...
@overload
def with_retry(
    attempts: int, delay_secs: float, operation: Callable[[], T], *, retry_on: tuple[type[Exception], ...] = ...
) -> T: ...
def with_retry(
    attempts: int,
    delay_secs: float,
    operation: Sequence[str] | Callable[[], Any],
    *,
    retry_on: tuple[type[Exception], ...] = (OSError,),
) -> Any:
    """Run a program, or call a function, until it succeeds or `attempts` are used up. Return the last outcome.

    A program is tried again after any exit status except 0, 1 and 2; a function after the exceptions in `retry_on`. The
    delay doubles each time, and a random time of up to half of it is added.
    """
    if attempts < 1 or delay_secs < 0:
        raise ValueError("with_retry: at least one attempt, and a delay that is not negative")
    while True:
        attempts -= 1
        if callable(operation):
            try:
                return operation()
            except retry_on:
                if not attempts or mcp_tool.is_cancelled():
                    raise
        else:
            ended = run(operation, stdin=DEVNULL, capture_output=True, encoding="utf-8", errors="replace")
            if ended.returncode in FINAL_STATUSES or not attempts or mcp_tool.is_cancelled():
                return ended
        _pause(delay_secs)
        delay_secs *= 2


def download_safe(
    url: str,
    out: str | os.PathLike[str],
    *,
    allow: Iterable[str] = (),
    deny: Iterable[str] = (),
    max_bytes: int | None = None,
    timeout: float | None = None,
    user_agent: str | None = None,
    retry: int = 1,
    retry_delay: float = 1.0,
) -> Json:
    """Fetch an https URL into a file: {"success": True, "bytes", "path"}, or {"success": False, "error"}."""
    problem = _misuse(max_bytes, timeout, retry, retry_delay)
    if problem:
        return _failure("invalid_params", problem)
    if not isinstance(url, str) or not url.lower().startswith("https://"):
        return _failure("invalid_url", "The URL must begin with https://.")
    provider = _provider()
    if provider is None:
        return _failure("provider_unavailable", "The https provider is not installed beside this SDK.")
    env = {**os.environ, **_settings(allow, deny, max_bytes, timeout, user_agent)}
    target = os.fspath(out)
    beside = f"{target}.{os.urandom(8).hex()}.part"
    try:
        for attempt in range(1, retry + 1):
            with open(beside, "xb" if attempt == 1 else "wb") as file:
                ended = run(["sh", provider, url], env=env, stdin=DEVNULL, stdout=file, stderr=PIPE)
            if ended.returncode == 0:
                size = os.path.getsize(beside)
                os.replace(beside, target)
                return {"success": True, "bytes": size, "path": target}
            kind, may_help = PROVIDER_ENDINGS.get(ended.returncode, ("provider_error", True))
            if not may_help or attempt == retry or mcp_tool.is_cancelled():
                break
            _pause(retry_delay * 2 ** (attempt - 1))
        return _refusal(kind, ended)
    except OSError as error:
        return _failure("write_error", f"{target} cannot be written: {error.strerror}.")
    finally:
        if os.path.exists(beside):
            os.unlink(beside)


def download_safe_or_fail(url: str, out: str | os.PathLike[str], **options: Any) -> str:
    """The same as `download_safe`, but return the path, or end the call with -32602."""
    outcome = download_safe(url, out, **options)
    if not outcome["success"]:
        mcp_tool.fail_invalid_args(f"Download failed ({outcome['error']['type']}): {outcome['error']['message']}")
    return str(outcome["path"])


def _pause(secs: float) -> None:
    from random import random

    time.sleep(secs * (1 + random() / 2))


def _misuse(max_bytes: int | None, timeout: float | None, retry: int, retry_delay: float) -> str:
    if max_bytes is not None and max_bytes < 1:
        return "max_bytes must be positive."
    if timeout is not None and not 0 < timeout <= MAX_TIMEOUT_SECS:
        return f"timeout must be positive, and at most {MAX_TIMEOUT_SECS} seconds."
    return "" if retry >= 1 and retry_delay >= 0 else "retry must be at least 1, and retry_delay not negative."


def _provider() -> str | None:
    here = os.path.dirname(os.path.abspath(__file__))
    for home in (os.environ.get("MCPBASH_HOME"), os.path.dirname(os.path.dirname(here))):
        path = os.path.join(home or "", "providers", "https.sh")
        if home and os.path.isfile(path):
            return path
    return None


def _settings(
    allow: Iterable[str], deny: Iterable[str], max_bytes: int | None, timeout: float | None, user_agent: str | None
) -> dict[str, str]:
    """The provider's settings that differ from the operator's. The operator's denied hosts stay denied."""
    denied = os.environ.get("MCPGREEN_HTTPS_DENY_HOSTS") or os.environ.get("MCPBASH_HTTPS_DENY_HOSTS") or ""
    # An empty entry allows no host, and an empty setting would be none.
    hosts = "".join(f",{host}" for host in ([allow] if isinstance(allow, str) else allow))
    chosen = {
        "ALLOW_HOSTS": hosts,
        "ALLOW_ALL": "false" if hosts else "",
        "DENY_HOSTS": f"{denied} {_words(deny)}".strip(),
        "MAX_BYTES": max_bytes,
        "TIMEOUT_SECS": timeout,
        "USER_AGENT": user_agent,
    }
    return {f"MCPGREEN_HTTPS_{name}": str(value) for name, value in chosen.items() if value}


def _words(hosts: Iterable[str]) -> str:
    return hosts if isinstance(hosts, str) else " ".join(hosts)  # joining a string would separate its letters


def _refusal(kind: str, ended: CompletedProcess[bytes]) -> Json:
    said = ended.stderr.decode("utf-8", "replace").strip()
    if kind == "redirect":
        location = said.partition("\n")[0].removeprefix("redirect:")
        return _failure(kind, "The URL has moved; redirects are not followed.", location=location)
    return _failure(kind, said or f"The https provider ended with status {ended.returncode}.")


def _failure(kind: str, message: str, **more: str) -> Json:
    return {"success": False, "error": {"type": kind, "message": message, **more}}
