# SPDX-License-Identifier: Apache-2.0
"""The driver does nothing for an instance whose package has scripts that the operator does not allow its user."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from oslo_config import cfg
from oslo_context import context as oslo_context
from tacker import policy
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver.package import scripts
from tests.fake_api import FakeApi
from tests.lcm.instance import Instance
from tests.lcm.users import requested_by
from tests.lcm.web import deployment

OTHER = "pass\n"
DIGEST = hashlib.sha256(OTHER.encode()).hexdigest()


@pytest.fixture(autouse=True)
def tenant() -> Iterator[None]:
    policy.reset()
    policy.init()
    cfg.CONF.set_override("restrict_tenants", False, "k8s_cr")  # the objects are beside the inventories
    with requested_by("member"):
        yield
    policy.reset()
    cfg.CONF.clear_override("restrict_tenants", "k8s_cr")
    cfg.CONF.clear_override("allowed_scripts", "k8s_cr")


@pytest.fixture
def blue(cluster: FakeApi, tmp_path: Path) -> Instance:
    return Instance(cluster, tmp_path / "package", [deployment(1)])


def name_script(blue: Instance, text: str, file: str = "../Scripts/credential_sender.py") -> Path:
    """The package of the instance names a script with that text, for an operation that comes after the driver's part."""
    folder = Path(blue.vnfd.csar_dir)
    path = folder / "Definitions" / "vnfd.yaml"
    content = yaml.safe_load(path.read_text())
    artifact = {"type": "tosca.artifacts.Implementation.Python", "file": file}
    operations: dict[str, Any] = {"heal_end": {"implementation": "script"}}
    node = {"type": "test.VNF", "artifacts": {"script": artifact}, "interfaces": {"Vnflcm": operations}}
    content["topology_template"]["node_templates"]["VNF"] = node
    path.write_text(yaml.safe_dump(content))
    script = folder / "Definitions" / file
    if script.resolve().is_relative_to(folder.resolve()):
        script.parent.mkdir(exist_ok=True)
        script.write_text(text)
    blue.vnfd.definitions.clear()
    blue.vnfd.vnfd_flavours.clear()
    blue.vnfd.init_from_csar_dir(str(folder))
    return script.parent


def refused(cluster: FakeApi, blue: Instance, verb: str, *words: str) -> None:
    before = len(cluster.requests)
    with pytest.raises(sol_ex.SolException, match=r"\[k8s_cr\] allowed_scripts") as raised:
        getattr(blue, verb)(**({"vnfd": blue.vnfd} if verb == "change" else {}))
    assert raised.value.status == 403 and all(word in raised.value.detail for word in words), raised.value.detail
    assert len(cluster.requests) == before, "not even a read"


def test_a_package_with_this_projects_own_script_is_operated(blue: Instance) -> None:
    name_script(blue, scripts.text("credential_sender"))
    blue.instantiate()
    blue.heal()


def test_nothing_is_done_for_a_package_with_another_script(cluster: FakeApi, blue: Instance) -> None:
    blue.instantiate()
    name_script(blue, OTHER)
    for verb in ("heal", "change", "terminate", "roll_back_change", "roll_back_instantiate"):
        refused(cluster, blue, verb, "Scripts/credential_sender.py: the operator does not allow this script", DIGEST)


def test_nothing_is_done_for_a_package_whose_own_script_imports_another(cluster: FakeApi, blue: Instance) -> None:
    """Python looks for k8s_cr_driver beside the script first."""
    beside = name_script(blue, scripts.text("credential_sender")) / "k8s_cr_driver"
    beside.mkdir()
    (beside / "lcm.py").write_text(OTHER)
    refused(cluster, blue, "instantiate", "Scripts/k8s_cr_driver/lcm.py", DIGEST)


@pytest.mark.parametrize("file", ["../../other.py", "/usr/lib/other.py", "../Scripts/none.py"])
def test_nothing_is_done_for_a_package_whose_script_is_no_file_of_it(cluster: FakeApi, blue: Instance, file: str) -> None:
    beside = name_script(blue, OTHER, file)
    if beside.name == "Scripts":
        (beside / "none.py").unlink()
    refused(cluster, blue, "instantiate", "it is no file of the package")


def test_the_operator_allows_a_script_by_its_digest(cluster: FakeApi, blue: Instance) -> None:
    name_script(blue, OTHER)
    for allowed in ([DIGEST.upper()], ["*"]):
        cfg.CONF.set_override("allowed_scripts", allowed, "k8s_cr")
        blue.instantiate()
        blue.terminate()
    cfg.CONF.set_override("allowed_scripts", ["00"], "k8s_cr")
    refused(cluster, blue, "instantiate", DIGEST)


def test_an_admin_and_the_conductor_itself_may_have_any_script(blue: Instance) -> None:
    name_script(blue, OTHER)
    with requested_by("admin"):
        blue.instantiate()
    oslo_context.RequestContext(overwrite=False).update_store()
    blue.terminate()
