# SPDX-License-Identifier: Apache-2.0
"""Change of the current VNF package: what it adds, changes, deletes and keeps; its failure, rollback and retry."""

from pathlib import Path

import pytest

from ..cluster import CRDS, Cluster
from ..conftest import MakeVnf, Onboard
from ..objects import Object, Place, annotated, config_map, deployment, make
from ..packages import Package
from ..testbed.processes import until
from ..vim import connection_info
from ..vnf import Vnf

PLACE = Place("change")

SIZE = {"SIZE": {"type": "integer", PLACE.name: 1}, "MODE": {"type": "string", PLACE.name: "plain"}}


def frozen(mode: str, **marks: str) -> Object:
    return annotated({**config_map("frozen", mode=mode), "immutable": True}, **marks)


PACKAGE = Package(
    {
        "all.yaml": [
            deployment("web", 1),
            PLACE.custom("Shard", "db", replicas="${SIZE}"),
            PLACE.crd("Shard", scale=True),
            config_map("settings", mode="${MODE}"),
            config_map("dropped"),
            frozen("old"),
        ]
    },
    vdus={"Web": "web", "Db": "db"},
    parameters=SIZE,
)
NEW = Package(
    {
        "new.yaml": [
            deployment("web", 1),
            PLACE.custom("Shard", "db", replicas="${SIZE}"),
            PLACE.crd("Shard", scale=True),
            config_map("settings", mode="${MODE}", more="new"),
            PLACE.custom("Ledger", "books"),
            PLACE.crd("Ledger"),
            frozen("new", replace="true"),
        ]
    },
    vdus={"Site": "web", "Db": "db"},
    parameters=SIZE,
)
STUCK = Package(
    {
        "stuck.yaml": [
            deployment("web", 1, image="error-image"),
            PLACE.custom("Shard", "db", replicas="${SIZE}"),
            PLACE.crd("Shard", scale=True),
            config_map("settings", mode="other"),
            PLACE.custom("Ledger", "books"),
            PLACE.crd("Ledger"),
            frozen("new", replace="true"),
        ]
    },
    vdus={"Web": "web", "Db": "db"},
    parameters=SIZE,
)


def policy(**rules: list[Object]) -> Object:
    return make("networking.k8s.io/v1", "NetworkPolicy", "rules", spec={"podSelector": {}, "ingress": [{}], **rules})


def recreated() -> Object:
    web = deployment("web")
    web["spec"]["strategy"] = {"type": "Recreate"}
    web["spec"]["template"]["spec"]["serviceAccountName"] = "agent"
    return web


PLAIN = Package({"plain.yaml": [deployment("web"), policy()]}, vdus={"Web": "web"})
DERIVED = Package(
    {"derived.yaml": [recreated(), policy(egress=[{}]), make("v1", "ServiceAccount", "agent")]}, vdus={"Web": "web"}
)


@pytest.fixture
def scaled(vnf: Vnf) -> Vnf:
    """With one Pod and one replica more than it was made with."""
    vnf.instantiate("all.yaml", parameters={"SIZE": 2, "MODE": "fast"})
    vnf.scale_out("Web")
    vnf.scale_out("Db")
    return vnf


def replicas(cluster: Cluster, kind: str = "Deployment", name: str = "web", api_version: str = "apps/v1") -> int:
    live = cluster.get(kind, name, PLACE.name, api_version)
    assert live is not None
    return int(live["spec"]["replicas"])


def data(cluster: Cluster, name: str = "settings") -> dict[str, str] | None:
    live = cluster.get("ConfigMap", name, PLACE.name)
    return live and dict(live.get("data") or {})


def test_it_adds_changes_and_deletes_and_keeps_counts_and_parameters(scaled: Vnf, cluster: Cluster, onboard: Onboard):
    pods = {vnfc["id"] for vnfc in scaled.vnfcs("Web")}
    new = onboard(NEW)
    scaled.change(new, "new.yaml")
    assert scaled.shown()["vnfdId"] == new
    assert data(cluster) == {"mode": "fast", "more": "new"}
    assert data(cluster, "frozen") == {"mode": "new"}
    assert data(cluster, "dropped") is None
    assert cluster.get("Ledger", "books", PLACE.name, PLACE.version)
    assert (replicas(cluster), replicas(cluster, "Shard", "db", PLACE.version)) == (2, 3)
    assert {vnfc["id"] for vnfc in scaled.vnfcs("Site")} == pods and not scaled.vnfcs("Web")

    assert scaled.level("Db") == 1
    scaled.scale_out("Db")
    assert replicas(cluster, "Shard", "db", PLACE.version) == 4
    assert until(lambda: scaled.level("Site") == 1, 90), "Tacker does not know of the new aspect"
    scaled.scale_in("Site")
    assert replicas(cluster) == 1


def test_parameters_that_are_given_are_taken_and_a_count_among_them(scaled: Vnf, cluster: Cluster, package: str):
    scaled.change(package, "all.yaml", parameters={"SIZE": 5})
    assert (replicas(cluster), replicas(cluster, "Shard", "db", PLACE.version)) == (2, 5)
    assert data(cluster) == {"mode": "fast"}


def test_one_that_fails_is_rolled_back_to_the_former_set(scaled: Vnf, cluster: Cluster, onboard: Onboard):
    before, objects = scaled.shown(), set(cluster.of(scaled.id))
    operation = scaled.begin_change(onboard(STUCK), "stuck.yaml", wait_timeout=10)
    assert "Deployment.apps change/web" in scaled.failure(operation)["detail"]
    assert data(cluster) == {"mode": "other"}
    scaled.roll_back(operation)
    assert set(cluster.of(scaled.id)) == objects
    assert cluster.get("CustomResourceDefinition", f"ledgers.{PLACE.group}", api_version=CRDS) is None
    assert (data(cluster), data(cluster, "frozen")) == ({"mode": "fast"}, {"mode": "old"})
    assert (replicas(cluster), replicas(cluster, "Shard", "db", PLACE.version)) == (2, 3)
    after = scaled.shown()
    assert after["vnfdId"] == before["vnfdId"]
    assert after["instantiatedVnfInfo"]["scaleStatus"] == before["instantiatedVnfInfo"]["scaleStatus"]
    scaled.scale_in("Web")
    assert replicas(cluster) == 1


def test_a_rollback_takes_over_what_users_have_set_since(scaled: Vnf, cluster: Cluster, onboard: Onboard):
    """What the package before sets; the change fails for a conflict, and a rollback cannot be given force-conflicts."""
    containers = [{"name": "web", "image": "docker.io/library/nginx"}]
    template = {"spec": {"template": {"spec": {"containers": containers}}}}
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": PLACE.name}, **template}
    made = cluster.get("Deployment", "web", PLACE.name, "apps/v1")
    before = [one["image"] for one in made["spec"]["template"]["spec"]["containers"]] if made else []
    cluster.apply(web, "a-user")
    cluster.change("ConfigMap", "settings", PLACE.name, data={"mode": "theirs"})
    operation = scaled.begin_change(onboard(NEW), "new.yaml")
    assert "others manage fields" in scaled.failure(operation)["detail"]
    scaled.roll_back(operation)
    live = cluster.get("Deployment", "web", PLACE.name, "apps/v1")
    assert live and [one["image"] for one in live["spec"]["template"]["spec"]["containers"]] == before
    assert data(cluster) == {"mode": "fast"}
    assert cluster.get("Ledger", "books", PLACE.name, PLACE.version) is None
    assert (data(cluster, "frozen"), data(cluster, "dropped")) == ({"mode": "old"}, {})


def test_an_endpoint_without_a_cluster_fails_and_rolls_back(scaled: Vnf, cluster: Cluster, package: str, bed: dict[str, str]):
    there = connection_info(Path(bed["KUBECONFIG"]))
    moved = {**there, "interfaceInfo": {**there["interfaceInfo"], "endpoint": "https://127.0.0.1:1"}}
    operation = scaled.begin_change(package, "all.yaml", vim=moved)
    assert "cannot connect to https://127.0.0.1:1" in scaled.failure(operation)["detail"]
    scaled.roll_back(operation)
    assert replicas(cluster) == 2


def test_what_the_api_server_has_derived_goes_with_what_it_was_derived_from(
    make_vnf: MakeVnf, onboard: Onboard, cluster: Cluster
):
    """The account under its deprecated name, the parameters of a strategy, the types of a NetworkPolicy."""
    plain = onboard(PLAIN)
    vnf = make_vnf(plain)
    vnf.instantiate("plain.yaml")

    def derived() -> tuple[str, bool, set[str], list[str]]:
        web, rules = (
            cluster.get(kind, name, PLACE.name, f"{group}/v1")
            for kind, name, group in (("Deployment", "web", "apps"), ("NetworkPolicy", "rules", "networking.k8s.io"))
        )
        assert web and rules
        accounts = {value for name, value in web["spec"]["template"]["spec"].items() if name.startswith("serviceAccount")}
        strategy = web["spec"]["strategy"]
        return strategy["type"], "rollingUpdate" in strategy, accounts, rules["spec"]["policyTypes"]

    before = derived()
    assert before == ("RollingUpdate", True, set(), ["Ingress"])
    vnf.change(onboard(DERIVED), "derived.yaml")
    assert derived() == ("Recreate", False, {"agent"}, ["Ingress", "Egress"])
    vnf.change(plain, "plain.yaml")
    assert derived() == before
