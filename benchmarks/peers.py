# SPDX-License-Identifier: Apache-2.0
"""The same objects by other means: bare HTTP as the limit, and the tools that operators use."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import urllib3
import yaml

from benchmarks.package import COLLECTION
from builds.programs import build
from k8s_cr_driver.kube.connection import APPLY
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.keys import Object


def bare_http(endpoint: Endpoint, objects: Sequence[Object], threads: int) -> None:
    """One server-side apply for each object; nothing is waited for."""
    headers = {"Content-Type": APPLY, "Accept": "application/json", "Authorization": endpoint.authorization}
    pool = urllib3.PoolManager(maxsize=threads, ssl_context=endpoint.tls_context(), headers=headers)
    with pool, ThreadPoolExecutor(threads) as workers:

        def apply(obj: Object) -> int:
            url = f"{endpoint.url}{COLLECTION}/{obj['metadata']['name']}?fieldManager=bare&force=false"
            return pool.request("PATCH", url, body=json.dumps(obj)).status

        assert {200, 201} >= set(workers.map(apply, objects))


def kubectl(kubeconfig: Path, objects: Sequence[Object], home: Path) -> None:
    """`kubectl apply --server-side`."""
    package = home / "objects.yaml"
    package.write_text(yaml.safe_dump_all(objects, sort_keys=False))
    program = build("kubernetes") / "kubectl"
    options = (f"--kubeconfig={kubeconfig}", f"--cache-dir={home / 'cache'}")
    _run(home, program, *options, "apply", "--server-side", f"--filename={package}")


def helm(kubeconfig: Path, objects: Sequence[Object], home: Path) -> None:
    """`helm install --wait`."""
    templates = home / "chart" / "templates"
    templates.mkdir(parents=True, exist_ok=True)
    (home / "chart" / "Chart.yaml").write_text("apiVersion: v2\nname: benchmark\nversion: 1.0.0\n")
    (templates / "objects.yaml").write_text(yaml.safe_dump_all(objects, sort_keys=False))
    program = build("rendering") / "helm"
    _run(home, program, f"--kubeconfig={kubeconfig}", "install", "benchmark", home / "chart", "--wait", "--timeout=10m")


def _run(home: Path, *command: str | Path) -> None:
    """With caches and settings of its own."""
    variables = {name: str(home / name.lower()) for name in ("HOME", "HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")}
    done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{Path(command[0]).name} failed: {done.stderr[-1000:]}")
