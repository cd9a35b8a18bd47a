# SPDX-License-Identifier: Apache-2.0
"""Bad input is reported in one clear error through Tacker's API, and nothing is written to the cluster."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ..client import Body
from ..cluster import Cluster
from ..conftest import MakeVnf
from ..objects import Object, Place, annotated, config_map, deployment, make
from ..packages import Package
from ..testbed import bed as testbed
from ..testbed.kubernetes import Kubernetes
from ..vim import connection_info
from ..vnf import Vnf

PLACE = Place("refusals")

_BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "\n".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
_ENVIRONMENT = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]


def _twice_the_same_variable() -> Object:
    manifest = deployment("web")
    manifest["spec"]["template"]["spec"]["containers"][0]["env"] = _ENVIRONMENT
    return manifest


PACKAGE = Package(
    {
        "good.yaml": config_map("good", a="1"),
        "theirs.yaml": config_map("theirs", a="1"),
        "web.yaml": deployment("web"),
        "meters.yaml": PLACE.crd("Meter", scale=True),
        "unknown-kind.yaml": PLACE.custom("Unknown", "a"),
        "unknown-vdu.yaml": annotated(deployment("web"), vdu="Web"),
    },
    unchecked={
        "not-yaml.yaml": "kind: [",
        "bomb.yaml": _BOMB,
        "no-kind.yaml": "apiVersion: v1\nmetadata: {name: a}\n",
        "no-name.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n",
        "keys.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: '1', a: '2'}\n",
        "twice.yaml": [config_map("a", a="1"), config_map("a", a="2")],
        "entries.yaml": _twice_the_same_variable(),
        "meter.yaml": PLACE.custom("Meter", "a", replicas="many"),
    },
)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (["missing.yaml"], "Files/kubernetes/missing.yaml: no such file in the package"),
        (["not-yaml.yaml"], "not-yaml.yaml, document 1, line"),
        (["bomb.yaml"], "bomb.yaml, document 1"),
        (["no-kind.yaml"], "no-kind.yaml, document 1: kind: is missing"),
        (["no-name.yaml"], "no-name.yaml, document 1: metadata.name: is missing in this ConfigMap"),
        (["keys.yaml"], "keys.yaml, document 1, line"),
        (["twice.yaml"], "ConfigMap a is written twice"),
        (["entries.yaml"], "entries.yaml, document 1, Deployment web: spec.template.spec.containers"),
        (["unknown-kind.yaml"], "unknown kind: refusals.example.com/v1 Unknown (object a)"),
        (["meters.yaml", "meter.yaml"], "spec.replicas"),
        (["unknown-vdu.yaml"], "annotation k8s-cr-driver/vdu names 'Web', which the VNFD does not have"),
        (["../../../../etc/hostname"], "leads out of the package"),
        (["https://example.org/a.yaml"], "manifests at a URL are read only of the hosts that the operator names"),
        (["file:///etc/hostname"], "only paths inside the package are allowed"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_a_bad_package_is_refused(vnf: Vnf, cluster: Cluster, files: list[str], message: str):
    before = cluster.contents(PLACE)
    problem = vnf.refusal("good.yaml", *files)
    assert message in problem["detail"]
    assert problem["status"] == 400
    assert cluster.contents(PLACE) == before


@pytest.fixture
def theirs(cluster: Cluster) -> Iterator[Object]:
    """An object of a user."""
    with cluster.holding(config_map("theirs", PLACE.name, made_by="a user")) as [made]:
        yield made


def test_an_object_of_a_user_is_refused_and_stays_as_it_is(vnf: Vnf, cluster: Cluster, theirs: Object):
    before = cluster.contents(PLACE)
    problem = vnf.refusal("good.yaml", "theirs.yaml")
    assert "ConfigMap refusals/theirs exists already and was not created by this instance" in problem["detail"]
    assert (problem["status"], cluster.contents(PLACE)) == (409, before)
    live = cluster.get("ConfigMap", "theirs", PLACE.name)
    assert live is not None and live["metadata"]["resourceVersion"] == theirs["metadata"]["resourceVersion"]


def test_an_object_of_another_instance_is_refused_without_the_id_of_that(make_vnf: MakeVnf, cluster: Cluster):
    owner, other = make_vnf(), make_vnf()
    owner.instantiate("good.yaml")
    before = cluster.contents(PLACE)
    problem = other.refusal("web.yaml", "good.yaml")
    assert "ConfigMap refusals/good belongs to another VNF instance" in problem["detail"]
    assert owner.id not in problem["detail"]
    assert cluster.contents(PLACE) == before
    owner.terminate()
    assert cluster.get("ConfigMap", "good", PLACE.name) is None


def test_what_rbac_forbids_is_reported_by_verb_and_resource(vnf: Vnf, cluster: Cluster, bed: testbed.Environment):
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]
    with cluster.holding(make("rbac.authorization.k8s.io/v1", "ClusterRole", "few-permissions", rules=rules)):
        vim = connection_info(Path(bed["KUBECONFIG"]), "few-permissions", "few-permissions")
        before = cluster.contents(PLACE)
        problem = vnf.refusal("good.yaml", "web.yaml", vim=vim)
        assert "create deployments.apps" in problem["detail"] and "patch deployments.apps" in problem["detail"]
        assert (problem["status"], cluster.contents(PLACE)) == (403, before)


def test_a_cluster_that_cannot_be_reached_is_reported(vnf: Vnf, vim: Body):
    nobody = "https://127.0.0.1:1"
    interface = {**vim["interfaceInfo"], "endpoint": nobody}
    problem = vnf.refusal("good.yaml", vim={**vim, "interfaceInfo": interface}, wait_timeout=2)
    assert f"cannot connect to {nobody}" in problem["detail"]


def test_a_certificate_of_another_authority_is_not_accepted(vnf: Vnf, vim: Body, cluster: Cluster, kubernetes: Kubernetes):
    before = cluster.contents(PLACE)
    another = kubernetes.machine.read("/etc/kubernetes/pki/front-proxy-ca.crt")
    interface = {**vim["interfaceInfo"], "ssl_ca_cert": another}
    problem = vnf.refusal("good.yaml", vim={**vim, "interfaceInfo": interface}, wait_timeout=2)
    assert "certificate" in problem["detail"] and "interfaceInfo.ssl_ca_cert" in problem["detail"]
    assert cluster.contents(PLACE) == before


def test_a_bad_token_is_reported_and_not_repeated(vnf: Vnf, vim: Body, cluster: Cluster):
    before = cluster.contents(PLACE)
    problem = vnf.refusal("good.yaml", vim={**vim, "accessInfo": {"bearer_token": "no-such-token"}}, wait_timeout=2)
    assert "does not accept the credentials (401)" in problem["detail"]
    assert "no-such-token" not in str(problem)
    assert cluster.contents(PLACE) == before
