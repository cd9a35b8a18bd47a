# SPDX-License-Identifier: Apache-2.0
"""Reads the driver's options in tacker.conf, see `options`: for the verbs, and for scripts that Tacker runs."""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from oslo_config import cfg
from oslo_log import log

from k8s_cr_driver.errors import Forbidden, InvalidRequest
from k8s_cr_driver.kube.endpoint_rules import EndpointRules
from k8s_cr_driver.lcm import workers
from k8s_cr_driver.lcm.options import GROUPS, OPTIONS
from k8s_cr_driver.ssh import host_keys
from k8s_cr_driver.vnf import tenants
from k8s_cr_driver.vnf.policy import Policy

_FILES = "K8S_CR_CONDUCTOR_CONFIG"
"""The variable of the environment in which scripts that Tacker runs find the conductor's files of options."""
OF_SCRIPTS = (
    *("allowed_endpoints", "allow_http_endpoints", "allowed_receivers", "allowed_ssh_hosts", "verify_tls_without_ca"),
    *("max_wait_timeout", "ssh_known_hosts"),
)
"""The options that hold for those scripts. Others may refer to options that only Tacker knows."""
HEAT_OPTIONS = [cfg.BoolOpt("heat_verify_cert", default=False), cfg.StrOpt("heat_ca_cert_file", default="")]
"""Tacker's own."""


@dataclass(frozen=True)
class LoadBalancer:
    """A load balancer of the operator."""

    address: str
    username: str
    key: str = field(repr=False)
    """A private key."""


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTIONS, group="k8s_cr")


def publish(conf: cfg.ConfigOpts) -> None:
    """Lets scripts that this process runs find its options: Tacker gives them its environment, but no argument.

    The order of the arguments counts, and files that were read by default come before them. oslo.config keeps both in lists
    of files and of folders, which do not say so; the arguments themselves have no public name.
    """
    os.environ[_FILES] = json.dumps(_of_files(conf._args or []))


def _of_files(args: Sequence[str]) -> list[str]:
    """Those of `args` that name files of options, with absolute paths."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name in ("--config-file", "--config-dir"):
        parser.add_argument(name, dest="found", action="append", default=[], type=functools.partial(_absolute, name))
    return list(parser.parse_known_args(args)[0].found)


def _absolute(name: str, path: str) -> str:
    return f"{name}={Path(path).expanduser().absolute()}"


def of_conductor() -> Any:
    """In such a script: options of the conductor's group [k8s_cr], OF_SCRIPTS, as its files have them now. InvalidRequest.

    Without the variable these are the files that tacker-conductor reads by default. `conf` has the other options.
    """
    conf = cfg.ConfigOpts()
    register(conf)
    log.register_options(conf)
    conf.register_opt(cfg.IntOpt("executor_thread_pool_size", default=workers.POOL))
    with reading():
        conf(_published(), project="tacker", prog="tacker-conductor")
        return SimpleNamespace(conf=conf, **{name: conf.k8s_cr[name] for name in OF_SCRIPTS})


def begin_log() -> None:
    """What such a script logs goes where the conductor's log is, if that is a file, a folder, the journal or syslog.

    Tacker reads the script's standard error, so nothing can be logged there. The conductor alone rotates its file.
    """
    with contextlib.suppress(InvalidRequest, log.LogConfigError, OSError):
        conf = of_conductor().conf
        conf.set_override("log_rotation_type", "none")
        log.setup(conf, "k8s-cr-driver")
    logging.getLogger("asyncssh").setLevel(logging.WARNING)  # it logs each command


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """InvalidRequest for options that a script cannot read."""
    try:
        yield
    except (cfg.Error, UnicodeDecodeError) as error:
        reason = _reason(error)
        raise InvalidRequest(f"a management driver cannot read the conductor's options: {reason}. Ask the operator.") from None


def _reason(error: cfg.Error | UnicodeDecodeError) -> str:
    """Without what a file has: the text of a ConfigFileParseError has the line, which may be a password."""
    match error:
        case cfg.ConfigFileParseError():
            return f"{error.config_file} is malformed"
        case UnicodeDecodeError():
            return "a file of them is not UTF-8"
    return str(error)


def _published() -> list[str]:
    """What `publish` has set. The conductor may still run with an earlier driver, which has set something else."""
    try:
        args = json.loads(os.environ.get(_FILES) or "[]")
    except ValueError:
        args = None
    if not isinstance(args, list) or not all(isinstance(arg, str) and arg.startswith("--config-") for arg in args):
        raise InvalidRequest(
            f"a management driver cannot read the conductor's options: {_FILES} in its environment was set by another version "
            "of the driver. Ask the operator to restart tacker-conductor."
        )
    return args


def endpoint_rules(options: Any) -> EndpointRules:
    """Which VIMs the conductor connects to, by the options of the group [k8s_cr]."""
    return EndpointRules(tuple(options.allowed_endpoints), options.allow_http_endpoints)


def receiver_rules(options: Any, project: str) -> EndpointRules:
    """Which receivers of their own the packages of a project may have, none if nothing is `allowed`.

    Whether they may be http is the package's matter.
    """
    group = _group(options.conf, f"k8s_cr:{project}")
    allowed = (*options.allowed_receivers, *(group.allowed_receivers if group else ()))
    return EndpointRules(allowed, plain_http=True, option="[k8s_cr] allowed_receivers")


def receiver(conf: cfg.ConfigOpts, name: str) -> Any:
    """The options of the receiver that the operator has given that name; None without one."""
    return _group(conf, f"k8s_cr_receiver:{name}")


def _group(conf: cfg.ConfigOpts, name: str) -> Any:
    """A group whose name has a part of its own; None if no file has it."""
    if name not in conf.list_all_sections():
        return None
    conf.register_opts(GROUPS[name.partition(":")[0]], group=name)
    return conf[name]


def _named(options: Any, kind: str, name: str, needed: str) -> tuple[str, Any]:
    """The group that a request chooses by its name, and its options. InvalidRequest without it, or without the `needed` one."""
    group = f"k8s_cr_{kind}:{name}"
    found = _group(options.conf, group)
    if found is None:
        raise InvalidRequest(f"{kind}: the conductor has no group [{group}]; ask the operator to add it to tacker.conf")
    if not found[needed]:
        raise InvalidRequest(f"{kind}: {needed} of [{group}] names none; ask the operator")
    return group, found


def _private_key(kind: str, group: str, found: Any) -> str:
    try:
        return Path(found.private_key).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError, cfg.Error, TypeError):
        raise InvalidRequest(f"{kind}: private_key of [{group}] cannot be read; ask the operator") from None


def ssh_rules(options: Any) -> EndpointRules:
    """To which servers the management drivers of clusters on servers connect."""
    return EndpointRules(tuple(options.allowed_ssh_hosts), plain_http=True, option="[k8s_cr] allowed_ssh_hosts")


def ssh_key(options: Any, name: str, keystone: str, project: Callable[[], str]) -> tuple[str, EndpointRules]:
    """In such a script: the private key that the operator has under this name, and the hosts that may see it used.

    `keystone` is the URL of the VIM, and `project` asks it for the id of the project that has logged in: the servers of others
    are not those of whoever names the key. Raises InvalidRequest, and Forbidden for another cloud or project.
    """
    group, found = _named(options, "ssh_key", name, "hosts")
    _check_project(found, f"ssh_key: the operator has the key {name}", group, keystone, project)
    rules = EndpointRules(tuple(found.hosts), plain_http=True, option=f"hosts, in the group {group},")
    return _private_key("ssh_key", group, found), rules


def vim_cloud(options: Any, name: str, keystone: str, project: Callable[[], str]) -> tuple[Path, str]:
    """In such a script: the clouds.yaml, and its entry, by which the operator lets clusters of that project become VIMs.

    All as for `ssh_key`. Raises InvalidRequest, and Forbidden for another cloud or project.
    """
    group, found = _named(options, "vim_cloud", name, "clouds_file")
    _check_project(found, f"vim_cloud: the operator has the cloud {name}", group, keystone, project)
    return Path(found.clouds_file), found.cloud


def _check_project(found: Any, what: str, group: str, keystone: str, project: Callable[[], str]) -> None:
    """Raises Forbidden for another Keystone or project than the options of the group name."""
    if not found.keystone or found.keystone.rstrip("/") != keystone.rstrip("/"):
        raise Forbidden(f"{what} for another cloud; ask for keystone of [{group}]")
    if not found.projects or project() not in found.projects:
        raise Forbidden(f"{what} for other projects; ask for projects of [{group}]")


def known_host_keys(options: Any, address: str) -> tuple[str, ...]:
    """In such a script: the host keys of a server that is not the instance's, as the operator has them. InvalidRequest."""
    try:
        text = Path(options.ssh_known_hosts).read_text(encoding="utf-8") if options.ssh_known_hosts else ""
    except (OSError, UnicodeDecodeError):
        raise InvalidRequest("[k8s_cr] ssh_known_hosts: cannot be read; ask the operator") from None
    found = host_keys.known(text, address)
    if not found:
        raise InvalidRequest(
            f"host_keys: is missing, and the operator's ssh_known_hosts has no host key of {address}; give it as a list of "
            "lines TYPE BASE64, such as those in /etc/ssh/*.pub there"
        )
    return tuple(found)


def load_balancer(options: Any, name: str, project: str) -> LoadBalancer:
    """In such a script: the load balancer that the operator has under this name. InvalidRequest, Forbidden for others.

    `project`: that of the instance, in Tacker.
    """
    group, found = _named(options, "load_balancer", name, "address")
    if not project or project not in found.projects:
        raise Forbidden(f"load_balancer: the operator has {name} for other projects; ask for projects of [{group}]")
    return LoadBalancer(found.address, found.username or "", _private_key("load_balancer", group, found))


def heat_verification(options: Any) -> bool | str:
    """How Tacker's OpenStack driver verifies the services of a cloud: not, by the system's CAs, or by the CA at this path."""
    options.conf.register_opts(HEAT_OPTIONS, group="v2_vnfm")
    own = options.conf.v2_vnfm
    return (own.heat_ca_cert_file or True) if own.heat_verify_cert else False


def policies(conf: cfg.ConfigOpts, ids: Iterable[str]) -> dict[str, Policy]:
    """The policies of all, and of the projects and VIMs with these ids for which tacker.conf has a group, by group."""
    named = {group: _group(conf, group) for group in (f"k8s_cr:{one}" for one in ids)}
    return {group: _policy(found) for group, found in {"k8s_cr": conf.k8s_cr, **named}.items() if found is not None}


def tenant_rules(conf: cfg.ConfigOpts, project: str, may_use: Callable[[str], str]) -> tenants.Rules:
    """What tenants of a project may have: by [k8s_cr], and more by the group of the project."""
    groups = [group for group in (conf.k8s_cr, _group(conf, f"k8s_cr:{project}")) if group is not None]
    lists = ("tenant_kinds", "tenant_cluster_roles", "tenant_external_names", "tenant_namespace_labels")
    return tenants.Rules(
        **{name: [one for group in groups for one in group[name]] for name in lists},
        allow_service_addresses=any(group.allow_service_addresses for group in groups),
        tenant_pod_security=conf.k8s_cr.tenant_pod_security,
        may_use=may_use,
    )


def given_namespaces(conf: cfg.ConfigOpts, project: str) -> list[str]:
    """Patterns of the namespaces that the operator gives a project."""
    group = _group(conf, f"k8s_cr:{project}")
    return [] if group is None else list(group.allowed_namespaces)


def reserved_namespaces(conf: cfg.ConfigOpts, ids: Iterable[str]) -> list[str]:
    """Patterns of those that groups of other projects and VIMs than these have; `*` reserves nothing."""
    own = {f"k8s_cr:{one}" for one in ids}
    others = (_group(conf, name) for name in conf.list_all_sections() if name.startswith("k8s_cr:") and name not in own)
    return [pattern for group in others for pattern in group.allowed_namespaces if pattern.strip("*")]


def _policy(options: Any) -> Policy:
    """The policy that the options with the names of its fields give."""
    values: dict[str, Any] = {field.name: options[field.name] for field in fields(Policy) if field.name in options}
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return Policy(**{**values, **lists})


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """For oslo-config-generator."""
    return [("k8s_cr", OPTIONS), *((f"{begin}:name", group) for begin, group in GROUPS.items() if begin != "k8s_cr")]
