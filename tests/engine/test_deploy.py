"""The files of deploy/: a cluster with TLS as they describe it, started by hand."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.external import PATIENCE, wait_until

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
CLUSTER, POLICY = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
CONTAINERS = {
    part: CLUSTER["spec"][part]["spec"]["containers"][0] for part in ("scheduler", "worker")
}


def tls_variables() -> dict[str, str]:
    """Those of members, and those of the machine that runs Themis."""
    lines = (DEPLOY / "tls.env").read_text().splitlines()
    client = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
    return {**COMPOSE["x-member"]["environment"], **client}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The address of a scheduler with a worker, and the variables to reach it."""
    pytest.importorskip("distributed", reason="Dask is not installed")
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    subprocess.run(["sh", DEPLOY / "certificates.sh", "certificates"], cwd=tmp_path, check=True)
    assert (tmp_path / "certificates" / "key.pem").stat().st_mode & 0o077 == 0
    variables = {
        name: re.sub("^/?certificates/", f"{tmp_path}/certificates/", value)
        for name, value in tls_variables().items()
    }
    environment, place = {**os.environ, **variables}, tmp_path / "scheduler.json"
    with ExitStack() as stack:

        def start(*arguments: str) -> None:
            command = [sys.executable, "-m", "dask", *arguments]
            process = subprocess.Popen(
                command, env=environment, stderr=subprocess.DEVNULL, cwd=tmp_path
            )
            stack.callback(process.wait, PATIENCE)
            stack.callback(process.terminate)

        start("scheduler", "--protocol", "tls", "--host", "127.0.0.1", "--port", "0",
              "--no-dashboard", "--scheduler-file", str(place))  # fmt: skip
        wait_until(lambda: place.exists() and place.read_text())
        address = str(json.loads(place.read_text())["address"])
        start("worker", address, "--nworkers", "1", "--nthreads", "1", "--no-dashboard")
        yield address.replace("tls://", "dask+tls://"), environment


PROGRAM = """
import themis
from themis.engine.executors import spread

spread.HERE_SECONDS = 0.0

def loan(person):
    return person["savings"] > (50 if person["race"] == "green" else 60)

schema = themis.Schema(race=["green", "purple"], savings=range(0, 100))
with themis.Audit(loan, schema, executor={address!r}) as audit:
    print(audit.causal("race").score)
"""


@pytest.mark.slow
def test_a_cluster_with_certificates_answers_and_none_without(
    cluster: tuple[str, dict[str, str]],
) -> None:
    address, environment = cluster
    program = PROGRAM.format(address=address)
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert found.stdout == "0.1\n", found.stderr
    stranger = {name: value for name, value in environment.items() if "DASK" not in name}
    refused = subprocess.run(command, env=stranger, capture_output=True, text=True)
    assert refused.returncode == 1
    assert "needs certificates" in refused.stderr


@pytest.mark.parametrize("part", CONTAINERS)
@pytest.mark.slow
def test_options_of_the_commands_are_dasks(part: str) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed")
    command = importlib.import_module(f"distributed.cli.dask_{part}").main
    known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
    for words in (COMPOSE["services"][part]["command"], CONTAINERS[part]["args"]):
        assert words[:2] == ["dask", part]
        assert {word.partition("=")[0] for word in words if word.startswith("--")} <= known


def test_all_members_speak_tls_and_nobody_else_reaches_them() -> None:
    wanted = COMPOSE["x-member"]["environment"].items()
    for container in CONTAINERS.values():
        assert wanted <= {each["name"]: each["value"] for each in container["env"]}.items()
        assert container["volumeMounts"][0]["mountPath"] == "/certificates"
    labels: dict[str, Any] = {"dask.org/cluster-name": CLUSTER["metadata"]["name"]}
    assert POLICY["spec"]["podSelector"]["matchLabels"] == labels
    assert POLICY["spec"]["ingress"][0]["from"][0]["podSelector"]["matchLabels"] == labels
    assert COMPOSE["services"]["scheduler"]["ports"] == ["127.0.0.1:8786:8786"]
