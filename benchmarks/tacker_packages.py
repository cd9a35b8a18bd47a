# SPDX-License-Identifier: Apache-2.0
"""
Tacker's own packages with Kubernetes manifests: what its onboarding says of each, and what `k8s-cr validate` says.

CHECKOUT is the repository openstack/tacker. A package is a folder in it whose TOSCA.meta names files of Files/kubernetes. It is
completed as Tacker's tests do: types, scripts and artifacts that it names are taken from elsewhere in the checkout.
Exits with 1 if the two differ on a package for a reason that this module does not have.
"""

from __future__ import annotations

import argparse
import logging
import re
import shutil
import sys
import tempfile
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple
from unittest import mock
from urllib.error import URLError

from rich.console import Console
from rich.table import Table

from benchmarks.without_images import refusal
from k8s_cr_driver.objects.fields import texts
from k8s_cr_driver.package import tosca_meta, vnfd
from tests.cli.onboarding import onboard

_SHOWN = 3
"""Lines of a refusal."""
_WIDTH = 160
_META = Path(tosca_meta.TOSCA_META)
_SCRIPT = re.compile(r"Scripts/[\w.]+")
_CHARTS = "has a chart and no object for its VDUs; init --from CHART makes a package of a chart"
_OF_V1 = "names its script from the top, as the v1 API does; the v2 API looks in Definitions"
REASONS: Mapping[str, str] = {
    "test_change_vnf_pkg_with_deployment": "has one of its five VDUs; a request that names some files is checked by --file",
    "test_cnf": "its flavour vdumap needs vdu_mapping of the v1 API",
    "test_cnf_container_update_after": _OF_V1,
    "test_cnf_container_update_before": _OF_V1,
    "test_cnf_helmchart": _CHARTS,
    "test_helm_change_vnf_pkg": _CHARTS,
    "test_helm_instantiate": _CHARTS,
}
"""Why `validate` refuses a package that Tacker onboards, by the package's name."""


class Outcome(NamedTuple):
    name: str
    tacker: Sequence[str]
    """What the onboarding refuses; empty if it accepts the package. So is the next one."""
    validate: Sequence[str]

    @property
    def reason(self) -> str:
        """Of a difference; `unknown` if there is none for it."""
        return REASONS.get(self.name, "unknown") if self.validate and not self.tacker else ""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tacker_packages", description=__doc__)
    parser.add_argument("checkout", type=Path, metavar="CHECKOUT", help="the repository openstack/tacker")
    checkout = parser.parse_args().checkout
    logging.disable()
    outcomes = [judged(folder, checkout) for folder in packages(checkout)]
    show(outcomes)
    sys.exit(not outcomes or any(one.reason == "unknown" for one in outcomes))


def packages(checkout: Path) -> Iterator[Path]:
    """The folders of packages that name Kubernetes manifests."""
    for meta in sorted(checkout.rglob(str(_META))):
        if f"{tosca_meta.MANIFESTS}/" in meta.read_text(errors="replace"):
            yield meta.parents[1]


def judged(package: Path, checkout: Path) -> Outcome:
    """What is said of a copy of the package, so that nothing is written to the checkout."""
    name = package.parent.name if package.name == "contents" else package.name
    with tempfile.TemporaryDirectory(prefix="tacker-packages-") as temporary:
        home = Path(temporary)
        folder = _completed(package, checkout, home / "package")
        return Outcome(name, _onboarded(folder, home, checkout), refusal("validate", str(folder)))


def _completed(package: Path, checkout: Path, folder: Path) -> Path:
    shutil.copytree(package, folder)
    named = set(map(tosca_meta.name_of, tosca_meta._meta_blocks(folder)[1:]))
    for content in vnfd.definitions(folder).values():
        named.update(_SCRIPT.findall(str(content)), (f"{vnfd.DEFINITIONS}/{name}" for name in texts(content, "imports")))
    for missing in sorted(name for name in named if not (folder / name).exists() and "://" not in name):
        if elsewhere := sorted(checkout.rglob(Path(missing).name)):
            (folder / missing).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(elsewhere[0], folder / missing)
    return folder


def _onboarded(folder: Path, home: Path, checkout: Path) -> Sequence[str]:
    csar = home / "package.csar"
    with zipfile.ZipFile(csar, "w") as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder))

    def opened(url: str) -> IO[bytes]:
        """What the test's own web server has, and types at a URL."""
        if found := sorted(checkout.rglob(Path(url).name)):
            return found[0].open("rb")
        raise URLError(f"{url}: not in the checkout")

    try:
        with mock.patch.object(urllib.request, "urlopen", opened):
            onboard(csar, home)
    except Exception as error:  # Tacker's own, and those of its parser, with places in their code
        return [line for text in str(error).splitlines() if "Error: " in (line := text.strip())] or [type(error).__name__]
    return ()


def show(outcomes: Sequence[Outcome]) -> None:
    table = Table(title=f"{len(outcomes)} packages of Tacker's repository with Kubernetes manifests")
    for heading in ("package", "onboarding", "validate", "why they differ"):
        table.add_column(heading)
    for one in outcomes:
        table.add_row(one.name, *("refuses" if why else "accepts" for why in (one.tacker, one.validate)), one.reason)
    console = Console(width=_WIDTH)
    console.print(table)
    for one in outcomes:
        for who, why in (("onboarding", one.tacker), ("validate", one.validate)):
            for line in why[:_SHOWN]:
                console.print(f"{one.name}: {who}: {line}", markup=False, soft_wrap=True)


if __name__ == "__main__":
    main()
