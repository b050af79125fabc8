"""The files of examples/proxy that cannot be run here: judged by schemas and linters, and fitting each other."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from mcpgreen.settings.settings import ROWS, load
from tests.deployment.cluster import EXAMPLES
from tests.docs.reader import DOCS, blocks_of
from tests.support.prerequisites import require_module, require_program
from tests.support.wire import CHECKOUT

KUBERNETES = EXAMPLES / "kubernetes" / "mcpgreen.yaml"
VERSIONS = ("1.30", "1.34")
KNOWN = {variable for row in ROWS for variable in row.variables}
DOCKERFILES = [CHECKOUT / "Dockerfile", EXAMPLES / "microsoft-mcp-gateway" / "Dockerfile"]


def kubernetes_objects() -> dict[str, Any]:
    return {each["kind"]: each for each in yaml.safe_load_all(KUBERNETES.read_text(encoding="utf-8"))}


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((EXAMPLES / "compose" / "compose.yaml").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["Deployment", "Service", "PodDisruptionBudget", "HorizontalPodAutoscaler"])
def test_kubernetes_knows_every_field(kind: str, version: str) -> None:
    validate = require_module("kubernetes_validate").validate

    validate(kubernetes_objects()[kind], version, strict=True)


def test_a_pod_has_time_to_drain() -> None:
    pod = kubernetes_objects()["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    settings = {each["name"]: each.get("value") for each in container["env"]}
    waits = container["lifecycle"]["preStop"]["sleep"]["seconds"]

    assert waits + float(settings["MCPGREEN_SHUTDOWN_TIMEOUT"]) < pod["terminationGracePeriodSeconds"]
    assert set(settings) <= KNOWN
    assert settings["MCPGREEN_HTTP_TOKEN"] is None  # from a secret
    assert container["args"][-1] == f"0.0.0.0:{container['ports'][0]['containerPort']}"


def test_the_unit_finds_what_the_page_installs() -> None:
    service = next(block.text for block in blocks_of(DOCS / "REMOTE.md") if block.info == "service")
    unit = (EXAMPLES / "systemd" / "mcpgreen.service").read_text(encoding="utf-8")
    made = re.findall(r"(?:venv|cp -r project|install -m 600 /dev/stdin) (/\S+)", service)
    started = re.search(r"ExecStart=(\S+)/bin/mcpgreen serve .*--project-root (\S+)[\s\S]*EnvironmentFile=(\S+)", unit)

    assert started is not None
    assert made == list(started.groups())
    assert all((CHECKOUT / name).is_file() for name in re.findall(r"examples/\S+", service))
    assert set(re.findall(r"(MCPGREEN_\w+)=", service)) <= KNOWN


def test_what_is_scaled_by_is_measured() -> None:
    """That a server has the metrics of the page is seen by tests/docs/test_serving.py."""
    page = (CHECKOUT / "docs" / "REMOTE.md").read_text(encoding="utf-8")
    autoscaler = kubernetes_objects()["HorizontalPodAutoscaler"]["spec"]
    scaled_by = {each["pods"]["metric"]["name"] for each in autoscaler["metrics"]}
    values = yaml.safe_load((EXAMPLES / "kubernetes" / "prometheus.yaml").read_text(encoding="utf-8"))
    (rule,) = values["prometheus-adapter"]["rules"]["custom"]
    (pattern,) = re.findall(r'__name__=~"([^"]+)"', rule["seriesQuery"])

    assert scaled_by and all(f"| `{name}` |" in page for name in scaled_by)
    assert all(re.fullmatch(pattern, name) for name in scaled_by)
    assert yaml.safe_load(values["prometheus"]["extraScrapeConfigs"])[0]["job_name"] == "mcpgreen"


def test_compose_has_the_replicas_that_nginx_knows() -> None:
    services = compose()["services"]
    replicas = [each for name, each in services.items() if name.startswith("replica-")]
    config = (EXAMPLES / "nginx" / "mcpgreen.conf").read_text(encoding="utf-8")

    assert {each["command"][-1] for each in replicas} == set(re.findall(r"server (127\.0\.0\.1:\d+)", config))
    assert {each["network_mode"] for each in replicas} == {"service:proxy"}
    for each in replicas:
        assert each["healthcheck"]["test"][-1] == each["command"][-1].rpartition(":")[2]
        assert set(each["environment"]) <= KNOWN
        drain_secs = float(each["environment"]["MCPGREEN_SHUTDOWN_TIMEOUT"])
        assert drain_secs < int(each["stop_grace_period"].removesuffix("s"))
        assert (EXAMPLES / "compose" / each["build"]["context"] / "Dockerfile").is_file()
    mounted = dict(volume.split(":")[:2] for volume in services["proxy"]["volumes"])
    assert (EXAMPLES / "compose" / "../nginx/mcpgreen.conf").is_file()
    assert {"/etc/ssl/certs/mcp.example.com.pem", "/etc/ssl/private/mcp.example.com.key"} <= set(mounted.values())
    assert all(path in config for path in mounted.values() if path.startswith("/etc/ssl/"))


def test_every_setting_that_is_named_exists() -> None:
    texts = [path.read_text(encoding="utf-8") for path in EXAMPLES.rglob("*") if path.is_file()]
    named = set(re.findall(r"\bMCPGREEN_[A-Z_]+", "\n".join([*texts, DOCKERFILES[0].read_text("utf-8")])))

    assert named <= KNOWN
    adapter = json.loads((EXAMPLES / "microsoft-mcp-gateway" / "adapter.json").read_text(encoding="utf-8"))
    assert load({}, adapter["environmentVariables"], {}).notes == ()


def test_the_entry_for_dockers_gateway_has_what_its_format_requires() -> None:
    entry = yaml.safe_load((EXAMPLES / "docker-mcp-gateway" / "mcpgreen.yaml").read_text(encoding="utf-8"))

    assert {"name", "title", "type", "description", "remote"} <= set(entry)
    (secret,) = entry["secrets"]
    assert secret["name"].startswith(f"{entry['name']}.")
    assert f"${{{secret['env']}}}" in entry["remote"]["headers"]["Authorization"]


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.parent.name)
def test_the_linter_finds_nothing_in_a_dockerfile(path: Path) -> None:
    beside = Path(sys.executable).with_name("hadolint")
    linter = str(beside) if beside.exists() else require_program("hadolint")

    # DL3006: the image is one of ours, which has no version of its own yet.
    done = subprocess.run([linter, "--ignore", "DL3006", str(path)], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (0, "")


def test_what_the_image_is_made_of_is_let_through() -> None:
    """.dockerignore keeps out everything else, so that neither secrets nor caches of a checkout get into an image."""
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILES[0].read_text("utf-8"), re.MULTILINE)
    lines = (CHECKOUT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    allowed = {line.removeprefix("!") for line in lines if line.startswith("!")}

    assert "*" in lines
    assert {name for names in copied for name in names.split()} == allowed
    assert all((CHECKOUT / name).exists() for name in allowed)
