"""`git+https://host/repository#ref:path`: read one file from a git repository, at a branch, tag or commit.

The repository is never cloned: one commit is fetched, without its files if the server supports that, and then the one
file. `#path` alone means the default branch. `git://` uses git's own protocol.

git runs without the user's configuration, hooks, submodules, redirects and proxies, and connects only to addresses that
the guard has checked.

Rule: no files or processes are left behind. While there is something to clean up, signals are only recorded
(`recorded_signals`), and every wait checks for them.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, NamedTuple
from urllib.parse import unquote

from mcpgreen.providers.exits import FETCH_FAILED, MEMORY_MB, NOT_FOUND, TOO_LARGE, ProviderFailure, refusal
from mcpgreen.providers.netguard import Guard, Url, read_url
from mcpgreen.settings.settings import Settings

DEFAULT_PORTS = {"git+https": 443, "git": 9418}
FORM = "git+https://HOST/REPOSITORY#REF:PATH"
OLDEST_GIT = (2, 37)  # the first version that can connect to a given address
LOOK_EVERY_SECS = 0.05
MAX_READ_BYTES = 64 * 1024  # of the output of git; no output that we need is longer

SHORTENED_COMMIT = re.compile(r"[0-9a-f]{7,39}|[0-9a-f]{41,63}")
NEVER_IN_A_REF = re.compile(r"^[-+/.]|[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|[/.]$")
PATH_OF_THIS_MACHINE = re.compile(r"(?<![\w:/])/[^\s'\"]+")
OTHER_ENTRIES = {"120000": "a symbolic link", "040000": "a directory", "160000": "a submodule"}

CONFIGURATION = (
    "core.bigFileThreshold=1m",  # larger files are not held in memory as a whole
    "core.deltaBaseCacheLimit=16m",
    "core.hooksPath=/dev/null",
    "core.packedGitLimit=64m",
    "core.packedGitWindowSize=16m",
    "credential.helper=",
    "fetch.unpackLimit=1",  # measuring one pack is faster than measuring a thousand objects
    "gc.auto=0",
    "http.followRedirects=false",
    "http.proxy=",
    "maintenance.auto=false",
    "pack.threads=1",  # each thread would need memory of its own
    "protocol.allow=never",
    "submodule.recurse=false",
    "transfer.bundleURI=false",
)

FETCH = ("fetch", "--quiet", "--no-tags", "--no-recurse-submodules")

# Parts of messages of git, with the exit status and the sentence for each. The first match counts.
MEANINGS = (
    ("ut of memory", TOO_LARGE, f"Fetching this takes more than {MEMORY_MB} MB of memory."),
    ("annot allocate memory", TOO_LARGE, f"Fetching this takes more than {MEMORY_MB} MB of memory."),
    ("couldn't find remote ref", NOT_FOUND, "The repository has no branch, tag or commit {ref}."),
    ("not our ref", NOT_FOUND, "The repository has no branch, tag or commit {ref}."),
    ("unadvertised object", NOT_FOUND, "The repository does not serve commit {ref}."),
    ("' not found", NOT_FOUND, "There is no repository at this URL."),
    ("could not read Username", FETCH_FAILED, "The repository asks for a login."),
    ("Authentication failed", FETCH_FAILED, "The repository rejected the login."),
    ("certificate", FETCH_FAILED, "The certificate of {host} is not valid."),
    ("returned error: 30", FETCH_FAILED, "The server redirects, and redirects are not followed; use the new URL."),
)


class Wanted(NamedTuple):
    """The parts of a URI: a file in a commit of a repository."""

    url: Url
    ref: str
    path: str


def provide(uri: str, settings: Settings, out: BinaryIO) -> None:
    if not settings.enable_git_provider:
        raise refusal("The git provider is off; MCPGREEN_ENABLE_GIT_PROVIDER=true turns it on.")
    wanted = read_uri(uri)
    timeout_secs = settings.git_timeout_secs
    deadline = time.monotonic() + timeout_secs
    addresses = Guard("git", settings).addresses(wanted.url.host, wanted.url.port, within_secs=timeout_secs)
    git = usable_git()
    with recorded_signals() as signals, temporary_directory() as directory:
        limits = Limits(deadline, timeout_secs, settings.git_max_kb * 1024, signals)
        Repository(git, wanted, addresses, directory=directory, limits=limits).copy_to(out)


def read_uri(uri: str) -> Wanted:
    """Parse the URI. Raises ProviderFailure."""
    url = read_url(uri, DEFAULT_PORTS)
    if "?" in url.target or url.target == "/":
        raise refusal(f"The URI must name a repository, without a query: {FORM}.")
    ref, colon, path = unquote(url.fragment).partition(":")
    if not colon:
        ref, path = "HEAD", ref
    if not path:
        raise refusal(f"The URI must name a file after #: {FORM}.")
    if not ref or NEVER_IN_A_REF.search(ref):
        raise refusal("The part between # and : is not the name of a branch, a tag or a commit.")
    if "\0" in path or any(part in ("", ".", "..") for part in path.split("/")):
        raise refusal("The path must be relative to the top of the repository, without . and .. in it.")
    return Wanted(url, ref, path)


def usable_git() -> str:
    """Return the path of git. Raises ProviderFailure if it is missing or too old."""
    git = shutil.which("git")
    if git is None:
        raise refusal("The git provider needs git, which is not installed on the server.")
    said = subprocess.run([git, "version"], stdin=subprocess.DEVNULL, capture_output=True, check=False).stdout
    version = re.search(rb"(\d+)\.(\d+)", said)
    if version is None or (int(version[1]), int(version[2])) < OLDEST_GIT:
        raise refusal(f"The git provider needs git {'.'.join(map(str, OLDEST_GIT))} or newer on the server.")
    return git


@contextmanager
def recorded_signals() -> Iterator[list[int]]:
    """Record signals in a list, so that they cannot end the process before it has cleaned up."""
    recorded: list[int] = []
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    previous = {number: signal.signal(number, lambda number, _: recorded.append(number)) for number in numbers}
    try:
        yield recorded
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def temporary_directory() -> Iterator[str]:
    directory = tempfile.mkdtemp(prefix="mcpgreen-git-")
    try:
        yield directory
    finally:
        # A process that is being killed may still add a file.
        for _ in range(100):
            shutil.rmtree(directory, ignore_errors=True)
            if not os.path.exists(directory):
                break
            time.sleep(0.01)


class Limits(NamedTuple):
    """The limits of time and size, and the signals that were received."""

    deadline: float
    timeout_secs: float
    max_bytes: int
    signals: list[int]

    def check(self, directory: str) -> None:
        """Raise SystemExit after a signal, or ProviderFailure beyond a limit."""
        if self.signals:
            raise SystemExit(128 + self.signals[0])
        if time.monotonic() > self.deadline:
            raise ProviderFailure(FETCH_FAILED, f"Timed out after {self.timeout_secs:g} seconds.")
        if size_of(directory) > self.max_bytes:
            raise self.too_large("The part of the repository that has to be fetched")

    def too_large(self, what: str) -> ProviderFailure:
        return ProviderFailure(TOO_LARGE, f"{what} is larger than {self.max_bytes // 1024} KiB.")


class Repository:
    """A bare repository in a temporary directory, with the objects that are needed for one file."""

    def __init__(self, git: str, wanted: Wanted, addresses: tuple[str, ...], *, directory: str, limits: Limits) -> None:
        self._wanted = wanted
        self._directory = directory
        self._limits = limits
        remote, pinning = _pinned(wanted.url, addresses)
        allowed = f"protocol.{remote.partition(':')[0]}.allow=always"
        # The https provider also uses these variables.
        bundle = os.environ.get("CURL_CA_BUNDLE") or os.environ.get("SSL_CERT_FILE")
        certificates = {"http.sslCAInfo": bundle, "http.sslCAPath": os.environ.get("SSL_CERT_DIR")}
        trusted = [f"{name}={place}" for name, place in certificates.items() if place]
        configuration = (*CONFIGURATION, *trusted, *pinning, allowed, f"remote.origin.url={remote}")
        self._command = [git, *(word for each in configuration for word in ("-c", each))]
        self._environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": directory,
            "TMPDIR": directory,
            "LC_ALL": "C",  # the messages are searched for known parts
            "GIT_DIR": os.path.join(directory, "repository"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_OVERRIDE_VIRTUAL_HOST": wanted.url.authority,
            "GIT_TERMINAL_PROMPT": "0",
        }
        self._environment |= {name: os.environ[name] for name in ("GIT_ASKPASS",) if name in os.environ}

    def copy_to(self, out: BinaryIO) -> None:
        """Write the wanted file to `out`."""
        blob = self._find_blob()
        if int(self._run("cat-file", "-s", blob)) > self._limits.max_bytes:
            raise self._limits.too_large(self._wanted.path)
        self._run("cat-file", "blob", blob, stdout=out.fileno())

    def _find_blob(self) -> str:
        """Fetch the commit, and return the id of the wanted file, which git fetches when it is read."""
        algorithm = "sha256" if re.fullmatch(r"[0-9a-f]{64}", self._wanted.ref) else "sha1"
        self._run("init", "--quiet", "--bare", "--template=", f"--object-format={algorithm}")
        for entry in self._run("ls-tree", "-z", self._fetch(), "--", self._wanted.path).split(b"\0"):
            about, _, name = entry.partition(b"\t")
            if os.fsdecode(name) == self._wanted.path:
                mode, _, blob = about.decode("ascii").split(" ")
                if mode in OTHER_ENTRIES:
                    raise ProviderFailure(NOT_FOUND, f"{self._wanted.path} is {OTHER_ENTRIES[mode]}, not a file.")
                return blob
        raise ProviderFailure(NOT_FOUND, f"The repository has no file {self._wanted.path} at {self._wanted.ref}.")

    def _fetch(self) -> str:
        """Fetch the commit, and return its name in this repository."""
        ref = self._wanted.ref
        try:
            self._run(*FETCH, "--depth=1", "--filter=blob:none", "origin", ref)
            return "FETCH_HEAD"
        except ProviderFailure as failure:
            if failure.status != NOT_FOUND or not SHORTENED_COMMIT.fullmatch(ref):
                raise
            missing = failure
        # Servers do not resolve shortened ids. With all commits, but without their trees, git can do that here.
        self._run(*FETCH, "--filter=tree:0", "origin", "+refs/heads/*:refs/remotes/origin/*")
        try:
            return self._run("rev-parse", "--quiet", "--verify", f"{ref}^{{commit}}").decode("ascii").strip()
        except ProviderFailure as failure:
            raise missing if failure.status == FETCH_FAILED else failure from None

    def _run(self, *arguments: str, stdout: int | None = None) -> bytes:
        """Run git within the limits, and return what it printed, unless that went to `stdout`."""
        # The output goes to files in the directory: pipes would have to be read, and the size of files is limited.
        place = os.path.join(self._directory, "")
        with open(place + "printed", "w+b") as printed, open(place + "complaints", "w+b") as complaints:
            child = subprocess.Popen(
                [*self._command, *arguments],
                env=self._environment,
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
                stdout=printed if stdout is None else stdout,
                stderr=complaints,
                start_new_session=True,  # a group to kill, and no terminal to ask for passwords
            )
            try:
                while child.returncode is None:
                    with suppress(subprocess.TimeoutExpired):
                        child.wait(LOOK_EVERY_SECS)
                    self._limits.check(self._directory)
            finally:
                if child.returncode is None:
                    os.killpg(child.pid, signal.SIGKILL)
                    child.wait()
            if child.returncode != 0:
                raise self._meaning_of(_end_of(complaints).decode("utf-8", "replace"))
            return _end_of(printed)

    def _meaning_of(self, complaint: str) -> ProviderFailure:
        for sign, status, meaning in MEANINGS:
            if sign in complaint:
                return ProviderFailure(status, meaning.format(ref=self._wanted.ref, host=self._wanted.url.host))
        lines = [line for line in complaint.splitlines() if line.startswith(("fatal: ", "error: "))]
        reason = PATH_OF_THIS_MACHINE.sub("...", lines[-1].partition(" ")[2]) if lines else "git gave no reason"
        return ProviderFailure(FETCH_FAILED, f"The file cannot be fetched: {reason}")


def size_of(directory: str) -> int:
    """Return the size of all files below a directory. Files may disappear meanwhile."""
    total = 0
    for place, _, names in os.walk(directory):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.lstat(os.path.join(place, name)).st_size
    return total


def _pinned(url: Url, addresses: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return the URL and the configuration that make git connect to these addresses and no others."""
    shown = [f"[{address}]" if ":" in address else address for address in addresses]
    if url.scheme == "git":
        return f"git://{shown[0]}:{url.port}{url.target}", ()
    resolving = () if url.host in addresses else (f"http.curloptResolve={url.host}:{url.port}:{','.join(shown)}",)
    return f"https://{url.authority}{url.target}", resolving


def _end_of(file: BinaryIO) -> bytes:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - MAX_READ_BYTES))
    return file.read()
