# SPDX-License-Identifier: Apache-2.0
"""What the TOSCA parser of Tacker refuses when a package is onboarded.

The parser reads a CSAR in a process of its own, which can be ended: it does not end on a type that is derived from itself, on a
file that imports itself, and on some regular expressions.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import resource
import signal
import sys
import tempfile
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import IO, NamedTuple
from urllib.error import URLError

from k8s_cr_driver.objects.fields import field
from k8s_cr_driver.package import csar, limits, vnfd
from k8s_cr_driver.package.tosca_meta import _files

_PARSER = "Tacker's TOSCA parser"
_REMEDIES = {
    "has a wrong number of occurrences": "give that requirement of the VNF's node type `occurrences: [0, 1]`",
    '"interfaces" of template': "declare that operation below `interfaces.Vnflcm` of the VNF's node type",
}
"""Of texts that name no file: both concern the node type, in one of Definitions."""
_SECONDS = 60
_BYTES = 4 * 1024**3
"""Of memory that the parser may have."""


class Outcome(NamedTuple):
    refusals: list[str]
    """A sentence for each mistake."""
    remote: list[str]
    """URLs that the parser wanted to load. Nothing is loaded here, so what it refuses is not known then."""


@contextlib.contextmanager
def parsing(folder: Path) -> Iterator[Callable[[], Outcome]]:
    """Of a folder that `check` has found no problem in; what is yielded waits for the outcome, beside what its caller does."""
    if refusals := _without_type(folder):
        yield lambda: Outcome(refusals, [])
        return
    with tempfile.TemporaryDirectory() as temporary, _parser(_written(folder, Path(temporary, "package.csar"))) as outcome:

        def without_place() -> Outcome:
            found = outcome()
            return found._replace(refusals=[text.replace(f"{temporary}/", "") for text in found.refusals])

        yield without_place


def _without_type(folder: Path) -> list[str]:
    """A sentence for each flavour of which the parser would not know the type of the VNF."""
    place = "topology_template.substitution_mappings.node_type"
    return [
        f"{vnfd.DEFINITIONS}/{file}: {place} is missing; it must be the type of the VNF"
        for file, content in vnfd.definitions(folder).items()
        if vnfd.flavour(content) and not field(content, "topology_template", "substitution_mappings", "node_type")
    ]


def _written(folder: Path, path: Path) -> Path:
    """The package as the parser sees it: of files that it does not read it wants to know that they are there."""
    with zipfile.ZipFile(path, "w") as archive:
        for name in _files(folder):
            is_read = (folder / name).stat().st_size <= limits.DEFINITION
            archive.writestr(name, (folder / name).read_bytes() if is_read else b"")
        for name, content in csar.added(folder).items():
            archive.writestr(name, content)
    return path


@contextlib.contextmanager
def _parser(package: Path) -> Iterator[Callable[[], Outcome]]:
    context = multiprocessing.get_context("fork")  # a new interpreter could import what lies in the user's folder
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(package, sender), daemon=True)
    process.start()
    sender.close()
    try:
        yield lambda: _outcome(process, receiver)
    finally:
        receiver.close()
        process.kill()
        process.join()


def _outcome(process: BaseProcess, receiver: Connection) -> Outcome:
    try:
        if receiver.poll(_SECONDS):
            outcome: Outcome = receiver.recv()
            return outcome
        cause = f"has not ended for {_SECONDS} s"
    except EOFError:
        process.join()
        cause = f"has ended with status {process.exitcode}"
    remedy = "look for a type that is derived from itself, a file that imports itself, and a pattern that takes long"
    return Outcome([f"{_PARSER} {cause}; {remedy}"], [])


def _work(package: Path, sender: Connection) -> None:
    """Of the process that parses."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C: the parent ends this process
    signal.alarm(_SECONDS + 1)  # unless the parent was killed
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_BYTES if hard == resource.RLIM_INFINITY else min(_BYTES, hard), hard))
    logging.disable()  # it warns of each input without a default: those of a flavour have none
    tempfile.tempdir = str(package.parent)  # where it leaves what it unpacks
    remote: list[str] = []

    def local(url: str) -> IO[bytes]:
        if (name := PurePosixPath(url).name) in vnfd._TYPE_FILES:
            return zipfile.ZipFile(package).open(f"{vnfd.DEFINITIONS}/{name}")
        remote.append(url)
        raise URLError("not loaded")

    urllib.request.urlopen = local  # type: ignore[assignment]
    # The parser imports it for packages at a URL alone, which takes a twentieth of a second
    sys.modules.setdefault("requests", ModuleType("requests"))
    sender.send(Outcome(_refusals(package), remote))


def _refusals(package: Path) -> list[str]:
    from toscaparser.common.exception import ExceptionCollector, ValidationError  # takes a tenth of a second
    from toscaparser.tosca_template import ToscaTemplate

    try:
        template = ToscaTemplate(str(package), None, True)
        nodes = getattr(template, "nodetemplates", [])
        ids = [value for node in nodes if (value := node.get_property_value("descriptor_id")) is not None]
    except ValidationError:
        report = ExceptionCollector.getExceptionsReport(full=False)  # without the places in its own code
        return [f"{_PARSER} refuses the package: {text}{_remedy(text)}" for text in dict.fromkeys(report)]
    except Exception as error:  # it takes much for granted
        return [f"{_PARSER} fails, {type(error).__name__}: {error}"]
    if not ids:
        return ["Entry-Definitions: no node has a descriptor_id; the VNF must be there"]
    return ["Entry-Definitions: descriptor_id is empty; give the package a UUID of its own"] if "" in ids else []


def _remedy(text: str) -> str:
    return next((f"; {remedy}" for part, remedy in _REMEDIES.items() if part in text), "")
