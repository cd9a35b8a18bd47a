"""Makes a VNF package (CSAR, SOL004) from a folder, and tells what is wrong with the folder first.

The same folder always gives the same bytes: names are sorted and times fixed, so a CSAR's hash says whether a package
changed. TOSCA.meta gets an entry with a hash for every file that it does not name, for Tacker takes only named files as
manifests; the type files of SOL001 come from the Tacker or tackerclient that is installed, unless the folder has them.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import zipfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import yaml

from k8s_cr_driver import manifest, parameters, schema
from k8s_cr_driver.documents import Shallow
from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.fields import field, texts
from k8s_cr_driver.keys import Object

TOSCA_META = "TOSCA-Metadata/TOSCA.meta"
DEFINITIONS = "Definitions"
MANIFESTS = "Files/kubernetes"

_META_KEYS = ("TOSCA-Meta-File-Version", "CSAR-Version", "Created-by", "Entry-Definitions")
_HASHES = {"sha-224": "sha224", "sha-256": "sha256", "sha-384": "sha384", "sha-512": "sha512"}
_TYPE_FILES = ("etsi_nfv_sol001_common_types.yaml", "etsi_nfv_sol001_vnfd_types.yaml")
_TYPE_FOLDERS = {
    "tacker": "tests/unit/vnfm/infra_drivers/openstack/data/etsi_nfv",
    "tackerclient": "tests/unit/osc/v1/fixture_data/sample_vnf_package/Definitions",
}
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip file can hold."""


class _Loader(Shallow, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads TOSCA as Tacker does."""


def check(folder: Path) -> list[str]:
    """What is wrong with a package's folder, a sentence each; empty if nothing is."""
    problems: list[str] = []
    for inspect in (_meta_problems, _definition_problems, _manifest_problems):
        try:
            problems += inspect(folder)
        except InvalidPackage as error:
            problems.append(str(error))
    return list(dict.fromkeys(problems))


def build(folder: Path, output: Path) -> Path:
    """Write the CSAR file and return its path. Raises InvalidPackage with every problem, one a line."""
    if problems := check(folder):
        raise InvalidPackage("\n".join(problems))
    return write(folder, output)


def write(folder: Path, output: Path) -> Path:
    """`build` for a folder that has been checked."""
    content = {name: (folder / name).read_bytes() for name in _files(folder) if (folder / name).resolve() != output.resolve()}
    content |= {f"{DEFINITIONS}/{path.name}": path.read_bytes() for path in _missing_types(folder)}
    content[TOSCA_META] = _complete_meta(folder, content).encode()
    output.parent.mkdir(parents=True, exist_ok=True)
    unfinished = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as csar:
            for name in sorted(content):
                entry = zipfile.ZipInfo(name, _EPOCH)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o100644 << 16
                csar.writestr(entry, content[name])
        unfinished.replace(output)
    finally:
        unfinished.unlink(missing_ok=True)
    return output


def manifests(folder: Path) -> list[str]:
    """The manifest files of a package, as lcm-kubernetes-def-files names them."""
    return [name for name in _files(folder) if name.startswith(f"{MANIFESTS}/") and name.endswith((".yaml", ".yml"))]


def leaves_out(folder: Path, files: Collection[str]) -> bool:
    """Whether `files`, as a request names them, are not all the manifests of the package."""
    return not set(manifests(folder)) <= set(files)


def _files(folder: Path) -> list[str]:
    """The package's files by their names in the package, without hidden ones."""
    names = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(name.as_posix() for name in names if not any(part.startswith(".") for part in name.parts))


def _meta_problems(folder: Path) -> Iterator[str]:
    head, *artifacts = _meta_blocks(folder)
    for key in _META_KEYS:
        if not head.get(key):
            yield f"{TOSCA_META}: {key} is missing; the first block must give it"
    files = _files(folder)
    for key in ("Entry-Definitions", "ETSI-Entry-Manifest"):
        if head.get(key) and head[key] not in files:
            yield f"{TOSCA_META}: {key} names {head[key]}, which is not in the package"
    for artifact in artifacts:
        yield from _artifact_problems(folder, artifact, files)


def _artifact_problems(folder: Path, artifact: dict[str, Any], files: list[str]) -> Iterator[str]:
    name = artifact.get("Name") or artifact.get("Source")
    if name not in files:
        yield f"{TOSCA_META}: the artifact {name} is not a file of the package; correct its Name or remove its block"
        return
    algorithm = str(artifact.get("Algorithm", "SHA-256")).lower()
    if algorithm not in _HASHES:
        yield f"{TOSCA_META}: {name}: Algorithm must be one of {', '.join(_HASHES).upper()}"
    elif "Hash" in artifact and str(artifact["Hash"]) != _digest(algorithm, (folder / str(name)).read_bytes()):
        yield f"{TOSCA_META}: {name}: Hash is not that of the file; remove the block to have it made"


def _definition_problems(folder: Path) -> Iterator[str]:
    contents = definitions(folder)
    flavours = [file for file, content in contents.items() if flavour(content)]
    if not flavours:
        yield (
            f"{DEFINITIONS}: no file has topology_template.substitution_mappings.properties.flavour_id; "
            "one must, for each flavour"
        )
    available = {*contents, *(path.name for path in _missing_types(folder))}
    for file, content in contents.items():
        for name in texts(content, "imports"):
            if "://" not in name and Path(name).name not in available:
                yield f"{DEFINITIONS}/{file}: imports {name}, which is not in the package"


def _manifest_problems(folder: Path) -> Iterator[str]:
    """What is wrong whatever a request may give. Files are taken one by one: a request may leave some of them out."""
    declared = parameters.declared(definitions(folder))
    values = {name: sample(declaration) for name, declaration in declared.items()}
    objects: list[Object] = []
    for name in manifests(folder):
        try:
            objects += manifest.load(folder, [name], fill=lambda value: parameters.fill(value, declared, values))
        except InvalidPackage as error:
            yield str(error)
    if not declared:
        # Sample values need not fit a schema.
        schema.check(objects)


def sample(declaration: parameters.Declaration) -> Any:
    """A value for a parameter that nobody has given yet: its default, else one of its type."""
    if declaration.secret:
        return {"secretRef": {"name": "sample", "key": "sample"}}
    samples = {"string": "sample", "integer": 1, "float": 1.0, "boolean": True}
    return samples[declaration.type] if declaration.default is None else declaration.default


def _meta_blocks(folder: Path) -> list[dict[str, Any]]:
    path = folder / TOSCA_META
    if not path.is_file():
        raise InvalidPackage(f"{TOSCA_META} is missing in {folder}; a package begins with it")
    texts = [text for text in re.split(r"\n\s*\n", _read(path, TOSCA_META)) if text.strip()]
    blocks = [document for text in texts for document in _parse(text, TOSCA_META)]
    if not blocks or not all(isinstance(block, dict) for block in blocks):
        raise InvalidPackage(f"{TOSCA_META} must be blocks of 'key: value' lines, with an empty line between blocks")
    return blocks


def definitions(folder: Path) -> dict[str, dict[str, Any]]:
    """The parsed files of a package's folder Definitions, by file name, as Tacker reads them. Raises InvalidPackage."""
    found = {}
    for path in sorted((folder / DEFINITIONS).glob("*.y*ml")):
        documents = _documents(path, f"{DEFINITIONS}/{path.name}")
        if len(documents) != 1 or not isinstance(documents[0], dict):
            raise InvalidPackage(f"{DEFINITIONS}/{path.name} must be one TOSCA service template")
        found[path.name] = documents[0]
    return found


def _documents(path: Path, name: str) -> list[Any]:
    return _parse(_read(path, name), name)


def _read(path: Path, name: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidPackage(f"{name} is not UTF-8 text") from None


def _parse(text: str, name: str) -> list[Any]:
    try:
        return list(yaml.load_all(text, Loader=_Loader))
    except yaml.YAMLError as error:
        raise InvalidPackage(f"{name} is not YAML: {error}") from None


def flavour(content: dict[str, Any]) -> str | None:
    """The deployment flavour that a TOSCA file describes, None if it describes none."""
    value = field(content, "topology_template", "substitution_mappings", "properties", "flavour_id")
    return value if isinstance(value, str) else None


def _missing_types(folder: Path) -> list[Path]:
    """SOL001's type files that the folder lacks, where an installed package has them."""
    missing = [name for name in _TYPE_FILES if not (folder / DEFINITIONS / name).is_file()]
    for package, inside in _TYPE_FOLDERS.items():
        spec = importlib.util.find_spec(package)
        for location in (spec.submodule_search_locations or []) if spec else []:
            paths = [Path(location, inside, name) for name in missing]
            if all(path.is_file() for path in paths):
                return paths
    raise InvalidPackage(
        f"{DEFINITIONS} lacks {' and '.join(missing)}: put them there, or install python-tackerclient, which has them"
    )


def _complete_meta(folder: Path, content: dict[str, bytes]) -> str:
    """TOSCA.meta with an entry for every file that has none, and a hash in every entry."""
    head, *artifacts = _meta_blocks(folder)
    named = {str(artifact.get("Name") or artifact.get("Source")): artifact for artifact in artifacts}
    for name in content:
        if not name.startswith((f"{DEFINITIONS}/", "TOSCA-Metadata/")):
            named.setdefault(name, {"Name": name})
    for name, artifact in named.items():
        algorithm = str(artifact.setdefault("Algorithm", "SHA-256")).lower()
        artifact["Hash"] = _digest(algorithm, content[name])
    return "\n".join(yaml.safe_dump(block, sort_keys=False) for block in (head, *named.values()))


def _digest(algorithm: str, data: bytes) -> str:
    return hashlib.new(_HASHES[algorithm], data).hexdigest()
