# SPDX-License-Identifier: Apache-2.0
"""Makes a VNF package (CSAR, SOL004) of a folder.

The same folder always gives the same bytes: names are sorted and times fixed, so a CSAR's hash says whether a package
changed. TOSCA.meta gets an entry with a hash for every file that it does not name, because Tacker takes only named files
as manifests. SOL001's type files come from the installed Tacker or tackerclient, and the scripts of this driver's management
drivers from `scripts`, unless the folder has them.
"""

from __future__ import annotations

import secrets
import zipfile
from pathlib import Path

import yaml

from k8s_cr_driver.package import check, scripts
from k8s_cr_driver.package.tosca_meta import TOSCA_META, _digest, _files, _meta_blocks, is_remote, name_of
from k8s_cr_driver.package.vnfd import DEFINITIONS, _missing_types

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip file can hold."""


def build(folder: Path, output: Path) -> Path:
    """`write` after `check.refuse_wrong`."""
    check.refuse_wrong(folder)
    return write(folder, output)


def write(folder: Path, output: Path) -> Path:
    """Write the CSAR file of a folder that has been checked, and return its path. An OSError names `output`."""
    content = {name: (folder / name).read_bytes() for name in _files(folder) if (folder / name).resolve() != output.resolve()}
    content |= added(folder)
    content[TOSCA_META] = _complete_meta(folder, content).encode()
    output.parent.mkdir(parents=True, exist_ok=True)
    unfinished = output.with_name(f".{output.name}.{secrets.token_hex(8)}")
    try:
        # In a folder of many, somebody could have made a file or a link of that name: "x" is O_EXCL.
        with unfinished.open("xb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as csar:
            for name in sorted(content):
                entry = zipfile.ZipInfo(name, _EPOCH)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o100644 << 16
                csar.writestr(entry, content[name])
        unfinished.replace(output)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(output)) from None
    finally:
        unfinished.unlink(missing_ok=True)
    return output


def added(folder: Path) -> dict[str, bytes]:
    """What the package has beside the files of its folder, by names in the package: SOL001's types, and scripts."""
    types = {f"{DEFINITIONS}/{path.name}": path.read_bytes() for path in _missing_types(folder)}
    return types | {name: text.encode() for name, text in scripts.missing(folder).items()}


def _complete_meta(folder: Path, content: dict[str, bytes]) -> str:
    """TOSCA.meta with an entry for every file that has none, and a hash in every entry."""
    head, *artifacts = _meta_blocks(folder)
    named = {name_of(artifact): artifact for artifact in artifacts}
    for name in content:
        if not name.startswith((f"{DEFINITIONS}/", "TOSCA-Metadata/")):
            named.setdefault(name, {"Name": name})
    for name, artifact in named.items():
        algorithm = str(artifact.setdefault("Algorithm", "SHA-256")).lower()
        if not is_remote(name):
            artifact["Hash"] = _digest(algorithm, content[name])
    return "\n".join(yaml.safe_dump(block, sort_keys=False) for block in (head, *named.values()))
