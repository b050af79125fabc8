"""Packaging only. Settings of the tools live in pyproject.toml."""

from __future__ import annotations

import re
from pathlib import Path

from setuptools import find_packages, setup

here = Path(__file__).parent
version = re.search(r'__version__ = "(.+)"', (here / "mcpgreen/__init__.py").read_text(encoding="utf-8"))
assert version is not None

setup(
    name="mcpgreen",
    version=version.group(1),
    description="Serve a folder of scripts as an MCP server over stdio",
    long_description=(here / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="MIT",
    python_requires=">=3.10",
    packages=[*find_packages(include=["mcpgreen", "mcpgreen.*"]), "mcpgreen.default_project"],
    # The example is shipped from where it lies: it is served when no project is found.
    package_dir={"mcpgreen.default_project": "project"},
    package_data={
        "mcpgreen": [
            *("py.typed", "sdk/*", "sdk/bin/*", "sdk/python/*", "sdk/python/*/*"),
            "sdk/warm/*",
            *("providers/*.sh", "running/*.sh", "templates/*/*", "cli/texts/*"),
            "fleet/lua/*",
        ],
        "mcpgreen.default_project": ["**/*"],
    },
    data_files=[("share/man/man1", ["docs/mcpgreen.1"])],
    # The lowest versions are tried in CI (.ci/run): each has to exist as it is written here.
    install_requires=[
        "gevent>=24.2.1",
        "ujson>=5.10",
        "jsonschema>=4.20",
        "pyyaml>=6",
        "docopt-ng>=0.9",
        # Tables, colours and bars for people at a terminal; loaded only there.
        "rich>=13",
        # Keeps the arguments of tasks and the answers of users secret on disk; loaded only for those.
        "cryptography>=42",
        # libjq 1.8 for scripts on hosts without jq; a jq of our own took 2,000 lines and knew less. Elsewhere there are
        # no wheels, and building it must not be what keeps somebody from installing us.
        "jq>=1.12; platform_machine in 'x86_64 amd64 AMD64 aarch64 arm64'",
    ],
    extras_require={
        # `config` for clients that have TOML; Python has a parser of its own from 3.11 on.
        "toml": ["tomli>=2; python_version < '3.11'"],
        # `/metrics` of a server over HTTP.
        "metrics": ["prometheus-client>=0.20"],
        # Tools on other machines. Since Celery 5.6, a busy worker leaves messages to others. Its own extra for Redis
        # would pin one version of packaging.
        "fleet": ["celery>=5.6", "redis>=5.2", "packaging"],
        # Access tokens over HTTP. joserfc would do as well, but needs Python 3.11. 2.10.0 took a part of `iss` for it.
        "oauth": ["pyjwt[crypto]>=2.10.1"],
        # mcp and mcp-types judge what we put on the wire, trustme makes certificates, uritemplate expands what we
        # match, setuptools builds the wheel that is tried; all of fastmcp is a peer in the benchmark only.
        "test": [
            "pytest>=8",
            "tomli>=2; python_version < '3.11'",
            "pytest-xdist>=3.2.1",  # the one before could wait for ever for the last test
            "mcp>=2.3",
            "mcp-types>=2.3",
            "fastmcp-slim[client]>=4; python_version >= '3.11'",  # its client alone
            "prometheus-client>=0.20",
            "celery>=5.6",
            "redis>=5.2",
            "trustme",
            "pyjwt[crypto]>=2.10.1",
            "uritemplate>=4.1.1",
            "setuptools>=70.1",
            "ruff",
            "mypy",
            "types-PyYAML",
            "types-jsonschema",
        ],
        # `make docs`: all pages as a site.
        "docs": ["mkdocs-material>=9.5"],
        # httptools: uvicorn's faster parser, for the peers over HTTP.
        "bench": ["mcp>=2.3", "fastmcp>=4", "fastmcp-tasks>=4.1", "uvicorn>=0.31", "httptools"],
    },
    # The command is the first; it says why.
    scripts=["scripts/installed/mcpgreen"],
    entry_points={"console_scripts": ["mcpgreen-python = mcpgreen.__main__:main"]},
)
