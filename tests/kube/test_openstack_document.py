# SPDX-License-Identifier: Apache-2.0
"""The Secrets that the documents show open a cloud."""

from __future__ import annotations

import re
import subprocess
import textwrap
from pathlib import Path

import yaml

from k8s_cr_driver.kube import openstack
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.keys import CloudEntry, SecretEntry
from tests.credentials.clusters import put_secret
from tests.fake_api import FakeApi
from tests.kube.keystone import PASSWORD, SECRET, keystone

DOCUMENT = Path(__file__).parents[2] / "doc" / "source" / "cluster_api.rst"
CLOUD = CloudEntry(SecretEntry("default", "cloud-config", "clouds.yaml"), "openstack")


def block(name: str) -> str:
    [code] = re.findall(rf":name: {name}\n\n((?:   .*\n|\n)+)", DOCUMENT.read_text())
    return textwrap.dedent(code).strip()


def opens(api: FakeApi, clouds: str) -> bool:
    put_secret(api, "cloud-config", {"clouds.yaml": clouds})
    with Connection(Endpoint(api.url)) as connection:
        return openstack.check(connection, CLOUD) == ""


def test_the_clouds_yaml_of_the_document_opens_a_cloud(api: FakeApi) -> None:
    with keystone() as cloud:
        given = block("clouds-yaml").replace("SECRET", SECRET)
        assert opens(api, given.replace("https://cloud.example.com:5000/v3", cloud.url))


def test_the_file_of_a_vim_becomes_a_clouds_yaml(api: FakeApi, tmp_path: Path) -> None:
    with keystone() as cloud:
        vim = {"auth_url": cloud.url.removesuffix("/v3"), "username": "nfv_user", "password": PASSWORD, "project_name": "nfv",
               "project_domain_name": "Default", "user_domain_name": "Default", "cert_verify": "True"}  # fmt: skip
        (tmp_path / "vim_config.yaml").write_text(yaml.safe_dump(vim))
        command, _, kubectl = block("vim-secret").removeprefix("$ ").partition("|")
        made = subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True, capture_output=True, text=True)
        assert opens(api, made.stdout)
        assert kubectl.split()[0] == "kubectl" and "clouds.yaml=/dev/stdin" in kubectl
