# SPDX-License-Identifier: Apache-2.0
"""additionalParams.parameters: declared with types by the package, filled into its manifests, secret ones by reference."""

from typing import Any

import pytest

from ..cluster import Cluster
from ..objects import Object, Place, config_map, deployment, make
from ..packages import Package
from ..vnf import Vnf

PLACE = Place("parameters")


def _logs_in() -> Object:
    manifest = deployment("login")
    [container] = manifest["spec"]["template"]["spec"]["containers"]
    container["env"] = [{"name": "TOKEN", "valueFrom": {"secretKeyRef": "${TOKEN}"}}]
    return manifest


def _counted() -> Object:
    manifest = deployment("web")
    manifest["spec"]["replicas"] = "${COUNT}"
    return manifest


PACKAGE = Package(
    {
        "web.yaml": _counted(),
        "config.yaml": config_map("config", title="${NAME}", url="http://${HOST:=localhost}:${COUNT}", script="echo $${HOME}"),
        "login.yaml": _logs_in(),
        "host.yaml": config_map("host", host="${HOST}"),
    },
    parameters={
        "NAME": {"type": "string", "description": "What it is called", "constraints": [{"max_length": 10}]},
        "COUNT": {"type": "integer", "required": False, PLACE.name: 1, "constraints": [{"in_range": [1, 3]}]},
        "HOST": {"type": "string", "required": False},
        "TOKEN": {"type": "string", "required": False, "metadata": {"secret": True}},
    },
)


def test_values_keep_their_types_and_defaults_fill_the_rest(vnf: Vnf, cluster: Cluster):
    # What looks like YAML stays text.
    vnf.instantiate("web.yaml", "config.yaml", parameters={"NAME": "a: {b: c}", "COUNT": 2})
    live, config = cluster.get("Deployment", "web", PLACE.name, "apps/v1"), cluster.get("ConfigMap", "config", PLACE.name)
    assert live is not None and live["spec"]["replicas"] == 2
    assert config is not None
    assert config["data"] == {"title": "a: {b: c}", "url": "http://localhost:2", "script": "echo ${HOME}"}


def test_a_secret_is_named_and_never_passed(vnf: Vnf, cluster: Cluster):
    with cluster.holding(make("v1", "Secret", "login", PLACE.name, stringData={"token": "s3cr3t-value"})):
        reference = {"name": "login", "key": "token"}
        vnf.instantiate("login.yaml", parameters={"NAME": "a", "TOKEN": {"secretRef": reference}})
        live = cluster.get("Deployment", "login", PLACE.name, "apps/v1")
        assert live is not None
        [variable] = live["spec"]["template"]["spec"]["containers"][0]["env"]
        assert variable["valueFrom"]["secretKeyRef"] == reference
        assert vnf.shown()["instantiatedVnfInfo"]["metadata"]["k8s_cr"]["parameters"]["TOKEN"] == {"secretRef": reference}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "parameters.NAME: is missing (What it is called)"),
        ({"NAME": "a", "COUMT": 2}, "parameters.COUMT: the package declares no such parameter; did you mean COUNT?"),
        ({"NAME": "a", "COUNT": "2"}, "parameters.COUNT: is text and must be of type integer"),
        ({"NAME": "a", "COUNT": 9}, "parameters.COUNT: does not meet the constraint in_range: [1, 3]"),
        ({"NAME": "a", "TOKEN": "s3cr3t-value"}, "parameters.TOKEN: is secret and takes no value of its own"),
        ({"NAME": "a"}, "host.yaml, document 1: ${HOST} has no value"),
    ],
)
def test_a_wrong_parameter_is_reported_and_nothing_written(vnf: Vnf, cluster: Cluster, given: dict[str, Any], message: str):
    before = cluster.contents(PLACE)
    problem = vnf.refusal("host.yaml", "web.yaml", parameters=given)
    assert message in problem["detail"]
    assert problem["status"] == 400
    assert "s3cr3t-value" not in problem["detail"]
    assert cluster.contents(PLACE) == before
