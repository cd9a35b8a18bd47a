# SPDX-License-Identifier: Apache-2.0
"""The rules that an operator has for kinds, in a folder of files: they hold for all instances of the process.

They are read once, by the first operation. A file that cannot be read is an error of the configuration, and no reason to judge
objects in another way than the operator wants: `use` raises.
"""

from __future__ import annotations

import fnmatch
import functools
import itertools
from collections.abc import Mapping
from pathlib import Path

import yaml

from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.objects import rule_files
from k8s_cr_driver.objects.cel import ExpressionError
from k8s_cr_driver.objects.keys import GroupKind
from k8s_cr_driver.resources.health import lua_rules
from k8s_cr_driver.resources.health.rules import Rules, of_texts

_SCRIPT = "health.lua"
_MOST_FILES = 1000
_LARGEST = 1024 * 1024
_used: dict[str, Mapping[GroupKind, Rules]] = {"rules": {}}
"""The rules that decide. They are replaced as a whole, because other threads judge meanwhile."""


def use(folder: str | Path) -> None:
    """Have the rules of a folder decide from now on; "" for none. InvalidRequest names the file and the field."""
    _used["rules"] = read(Path(folder)) if folder else {}


@functools.cache
def use_once(folder: str) -> None:
    """`use`, the first time that it is called for a folder: what was read then holds as long as the process runs."""
    use(folder)


def of(kind: GroupKind) -> Rules | None:
    """The operator's rules for a kind; None if there are none."""
    used = _used["rules"]
    if not used or kind in used:
        return used.get(kind)
    return next((rules for known, rules in used.items() if _is_of(known, kind)), None)


def _is_of(pattern: GroupKind, kind: GroupKind) -> bool:
    """Whether a folder's name with `_` in place of any text stands for a kind: `_.crossplane.io` and `_`."""
    if "_" not in pattern.group + pattern.kind:
        return False
    pairs = ((pattern.group, kind.group), (pattern.kind, kind.kind))
    return all(fnmatch.fnmatchcase(name, one.replace("_", "*")) for one, name in pairs)


def _scripts(folder: Path) -> dict[GroupKind, Rules]:
    """The rules of GROUP/KIND/health.lua; of a built-in kind without a group also KIND/health.lua."""
    paths = sorted([*folder.glob(f"*/*/{_SCRIPT}"), *folder.glob(f"*/{_SCRIPT}")])
    if len(paths) > _MOST_FILES:
        raise InvalidRequest(f"{folder}: has {len(paths):,} scripts, {_MOST_FILES:,} are allowed")
    if paths and not lua_rules.IS_AVAILABLE:
        raise InvalidRequest(f"{paths[0]}: is a script in Lua; install k8s-cr-driver[lua], or remove it")
    return {_kind_of(folder, path): _of_script(path, path.relative_to(folder).as_posix()) for path in paths}


def _kind_of(folder: Path, path: Path) -> GroupKind:
    *group, kind = path.relative_to(folder).parent.parts
    return GroupKind(group[0] if group else "", kind)


def _of_script(path: Path, name: str) -> Rules:
    source = _content(path)
    try:
        lua_rules.check(source, name)
    except lua_rules.LuaError as error:
        raise InvalidRequest(f"{path}: is no script in Lua: {error}") from None
    return Rules(f"operator's script {name}", script=lua_rules.script(source, name))


def read(folder: Path, whose: str = "operator's rules") -> dict[GroupKind, Rules]:
    """The rules in the YAML files of a folder, or in one file, by kind. InvalidRequest names the file and the field.

    `whose`: for people, begins the source of each.
    """
    if folder.is_file():
        return _of_file(folder, whose)
    if not folder.is_dir():
        raise InvalidRequest(f"{folder}: is no folder; name one with files of rules")
    found = _scripts(folder)
    where = dict.fromkeys(found, f"a {_SCRIPT}")
    files = sorted(path for path in folder.iterdir() if path.suffix in (".yaml", ".yml") and path.is_file())
    if len(files) > _MOST_FILES:
        raise InvalidRequest(f"{folder}: has {len(files):,} files, {_MOST_FILES:,} are allowed")
    for path in files:
        for kind, rules in _of_file(path, whose).items():
            if kind in found:
                raise InvalidRequest(f"{path}: {kind} has rules in {where[kind]}, too; write them in one file")
            found[kind], where[kind] = rules, path.name
    return found


def _content(path: Path) -> str:
    try:
        if path.stat().st_size > _LARGEST:
            raise InvalidRequest(f"{path}: is larger than {_LARGEST // 1024**2} MiB")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"{path}: cannot be read: {error}; mend it, or remove it from the folder") from None


def _of_file(path: Path, whose: str) -> dict[GroupKind, Rules]:
    content = _content(path)
    try:
        documents = [one for one in yaml.load_all(content, yaml.CSafeLoader) if one is not None]
        read_ones = [rule_files.read(one) for one in documents]
    except (yaml.YAMLError, RecursionError) as error:
        raise InvalidRequest(f"{path}: is not YAML: {' '.join(str(error).split())[:200]}") from None
    except ExpressionError as error:
        raise InvalidRequest(f"{path}: {error}") from None
    found: dict[GroupKind, Rules] = {}
    for kind, rules in itertools.chain.from_iterable(one.items() for one in read_ones):
        if kind in found:
            raise InvalidRequest(f"{path}: {kind} has rules in another document, too; write them in one")
        found[kind] = of_texts(rules, f"{whose} in {path.name}")
    return found
