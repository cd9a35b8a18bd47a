# SPDX-License-Identifier: Apache-2.0
"""Nothing that is secret is found where it does not belong: in a log (at DEBUG, too), a data base row, an answer, a file.

These tests run last, so they look at what all the others have left as well. Secrets belong in the cluster, and in VNF
packages and their copies. What Tacker itself keeps of a request, credentials of VIMs among it, is not the driver's.
"""

import base64
from collections.abc import Iterator

import pytest

from .. import disclosed
from ..client import Body, Client
from ..cluster import Cluster
from ..conftest import MakeVnf
from ..objects import Object, Place, deployment, make
from ..packages import Package
from ..testbed.ledger import Ledger
from ..testbed.tacker import Conductor
from ..vnf import Vnf

pytestmark = pytest.mark.alone("kubernetes", "tacker")

KINDS = Place("secrets")

CANARY = "canary-1c9e5a7d3b"
ENCODED = base64.b64encode(CANARY.encode()).decode()
WRONG_TOKEN = "canary-token-64fd0e2c"

# Beside the cluster's own folder: what holds packages, and what is looked at value by value.
_BELONGS = ("machines", "csar-files", "vnf-packages", "Files", "mariadb")


def _vaults() -> Object:
    """A CRD that allows no password with a hyphen."""
    definition = KINDS.crd("Vault")
    [version] = definition["spec"]["versions"]
    password = {"type": "string", "pattern": "^[a-z]+$"}
    version["schema"]["openAPIV3Schema"]["properties"]["spec"] = {"type": "object", "properties": {"password": password}}
    return definition


PACKAGE = Package(
    {
        "secret.yaml": make("v1", "Secret", "credentials", stringData={"password": CANARY}, data={"key": ENCODED}),
        "web.yaml": deployment("web"),
        "vaults.yaml": _vaults(),
    },
    {"web": "web"},
    unchecked={
        "vault.yaml": KINDS.custom("Vault", "a", password=CANARY),
        "bad-secret.yaml": make("v1", "Secret", "bad", data={"password": CANARY}),
        "not-yaml.yaml": f"password: {CANARY}: [",
    },
)


@pytest.fixture
def talkative(conductors: dict[str, Conductor]) -> Iterator[None]:
    """Conductors that log at DEBUG."""
    for conductor in conductors.values():
        conductor.kill()
        conductor.launch(options={"OS_DEFAULT__DEBUG": "true", "OS_DEFAULT__DEFAULT_LOG_LEVELS": "k8s_cr_driver=DEBUG"})
    for conductor in conductors.values():
        conductor.wait()
    yield
    for conductor in conductors.values():
        conductor.kill()


def test_what_operations_see_of_secrets_is_shown_nowhere(
    talkative: None, make_vnf: MakeVnf, vim: Body, cluster: Cluster, tacker: Client, ledger: Ledger
) -> None:
    vnf, other, stranger = make_vnf(), make_vnf(), make_vnf()
    for files in (["vaults.yaml", "vault.yaml"], ["bad-secret.yaml"], ["not-yaml.yaml"]):
        stranger.refusal(*files)
    stranger.refusal("secret.yaml", vim={**vim, "accessInfo": {"bearer_token": WRONG_TOKEN}}, wait_timeout=2)
    vnf.instantiate("secret.yaml", "web.yaml")
    other.refusal("secret.yaml")
    _scale_in_conflict(vnf, cluster, tacker)
    vnf.terminate()

    token = vim["accessInfo"]["bearer_token"]
    secrets = {"a value": CANARY, "its encoding": ENCODED, "a wrong token": WRONG_TOKEN, "the token": token}
    shown = disclosed.by_api(tacker, [vnf, other, stranger])
    places = (*shown, *disclosed.in_rows(ledger), *disclosed.in_files(ledger.home, _BELONGS))
    found = disclosed.found(places, secrets)
    assert not found, "\n".join(found)


def _scale_in_conflict(vnf: Vnf, cluster: Cluster, tacker: Client) -> None:
    """An operation that fails over fields of somebody else, and is given up."""
    cluster.apply(deployment("web", 3, namespace="default"), "somebody")
    operation = vnf.begin_scale("SCALE_OUT", "web")
    assert "somebody" in vnf.failure(operation)["detail"]
    tacker.fail(operation)
