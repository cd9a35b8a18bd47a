# SPDX-License-Identifier: Apache-2.0
"""Options of the group [k8s_cr] in tacker.conf: what an operator sets for all instances of a conductor."""

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

from k8s_cr_driver.engine.run.operation import WATCH_LIMITS
from k8s_cr_driver.errors import Forbidden, InvalidRequest
from k8s_cr_driver.kube.endpoint_rules import EndpointRules
from k8s_cr_driver.lcm import workers
from k8s_cr_driver.package.limits import Limits
from k8s_cr_driver.ssh import host_keys
from k8s_cr_driver.vnf import tenants
from k8s_cr_driver.vnf.counts import VNFCS
from k8s_cr_driver.vnf.policy import Policy

_LIMITS = Limits()
_FILES = "K8S_CR_CONDUCTOR_CONFIG"
"""The variable of the environment in which scripts that Tacker runs find the conductor's files of options."""
OF_SCRIPTS = (
    *("allowed_endpoints", "allow_http_endpoints", "allowed_receivers", "allowed_ssh_hosts", "verify_tls_without_ca"),
    *("max_wait_timeout", "ssh_known_hosts"),
)
"""The options that hold for those scripts. Others may refer to options that only Tacker knows."""

POLICY = [
    cfg.ListOpt(
        "allowed_kinds",
        default=[],
        help="The only kinds that packages may contain, as Kind or Kind.group with * for any part, such as "
        "``*.stable.example.com`` or ``Deployment.apps``; empty for all kinds.",
    ),
    cfg.ListOpt(
        "denied_kinds",
        default=[],
        help="Kinds that packages must not contain, in the same form, such as ``*.admissionregistration.k8s.io``.",
    ),
    cfg.ListOpt(
        "allowed_namespaces",
        default=[],
        help="The only namespaces in which packages may have objects, with * for any part; empty for all. Also the names of "
        "the Namespaces that they may contain.",
    ),
    cfg.ListOpt(
        "denied_namespaces",
        default=[],
        help="Namespaces in which packages must not have objects, in the same form.",
    ),
    cfg.BoolOpt(
        "allow_cluster_scoped",
        default=True,
        help="Whether packages may contain objects outside of namespaces: Namespaces, CustomResourceDefinitions, ClusterRoles.",
    ),
    cfg.BoolOpt(
        "allow_adopt_existing",
        default=True,
        help="Whether requests may set adopt-existing, if their users have the policy rule "
        "``os_nfv_orchestration_api_v2:k8s_cr:adopt_existing``, by default admins.",
    ),
    cfg.BoolOpt(
        "allow_force_conflicts",
        default=True,
        help="Whether requests may set force-conflicts, if their users have the policy rule "
        "``os_nfv_orchestration_api_v2:k8s_cr:force_conflicts``, by default admins.",
    ),
]
"""Also in the groups ``[k8s_cr:ID]`` of a project or a VIM."""

GRANTS = [
    cfg.ListOpt(
        "tenant_kinds",
        default=[],
        help="Kinds that tenants may have besides those that ``restrict_tenants`` allows, in the form of allowed_kinds, also "
        "outside of namespaces.",
    ),
    cfg.ListOpt(
        "tenant_cluster_roles",
        default=["view"],
        help="ClusterRoles that RoleBindings of tenants may name, with * for any part. Other RoleBindings name Roles of their "
        "package.",
    ),
    cfg.ListOpt(
        "tenant_external_names",
        default=[],
        help="Hosts that the field externalName of tenants' Services may name, and URLs in annotations, with * for any part, "
        "beside public names and Services of its own namespace, such as ``*.corp.internal``.",
    ),
    cfg.ListOpt(
        "tenant_namespace_labels",
        default=[],
        help="Labels that Namespaces of tenants may have, with * for any part, besides those of ``app.kubernetes.io/`` and "
        "``pod-security.kubernetes.io/``: none that a NetworkPolicy, a webhook or a mesh selects.",
    ),
    cfg.BoolOpt(
        "allow_service_addresses",
        default=False,
        help="Whether Services of tenants may choose their addresses and NodePorts: clusterIP, externalIPs, loadBalancerIP, "
        "loadBalancerClass, nodePort, healthCheckNodePort, and annotations that do the same.",
    ),
]
"""Also in the group ``[k8s_cr:ID]`` of a project, to which they give more."""

OPTIONS = [
    cfg.StrOpt(
        "inventory_namespace",
        default="default",
        help="Namespace, on each cluster, of the ConfigMaps that list the objects of each VNF instance. It must exist, "
        "and no VNF package may contain it.",
    ),
    cfg.StrOpt(
        "health_rules",
        default="",
        help="Folder of files with readiness rules for kinds, in the form of Flux's health checks; none by default. They are "
        "read by the first operation after a start of the service.",
    ),
    cfg.ListOpt(
        "allow_remote_manifests",
        default=[],
        help="Hosts of the https URLs that lcm-kubernetes-def-files may name, in the form of allowed_endpoints; none by "
        "default. The conductor reads them from its own place in the network, and follows no redirect. A name leads neither to "
        "loopback nor to link-local addresses, unless the list has their network.",
    ),
    cfg.ListOpt(
        "allowed_endpoints",
        default=[],
        help="Hosts that the endpoint and the oidc_token_url of a VIM may have: names, with * for any part, addresses and "
        "networks, such as ``*.clusters.example.com`` or ``10.0.0.0/8``. A name is resolved for each connection, which goes "
        "only to an address of the list, or of a name in the list that is neither loopback nor link-local. Addresses of the "
        "conductor's host, and of a cloud's metadata, must be listed themselves. By default to global addresses only. ``*`` "
        "allows all addresses, for test beds.",
    ),
    cfg.ListOpt(
        "allowed_receivers",
        default=[],
        help="Hosts of URLs to which the credential sender of a package may send the kubeconfigs of workload clusters, with "
        "secrets of the package's own, in the form of allowed_endpoints; none by default. A group ``[k8s_cr:PROJECT]`` may "
        "have more of them, for instances of that project. Receivers in groups ``[k8s_cr_receiver:NAME]`` need not be here.",
    ),
    cfg.ListOpt(
        "allowed_ssh_hosts",
        default=[],
        help="Hosts to which the management drivers of clusters on servers connect by SSH, in the form of allowed_endpoints. "
        "By default global addresses only: the addresses of servers are what a cloud says, which may be a tenant's own.",
    ),
    cfg.StrOpt(
        "ssh_known_hosts",
        default="",
        help="Path of a file of known hosts, as OpenSSH has it, of Ansible servers and load balancers that management drivers "
        "use, and whose host keys a request does not give.",
    ),
    cfg.BoolOpt(
        "allow_http_endpoints",
        default=False,
        help="Whether the endpoint and the oidc_token_url of a VIM may be http URLs, and what its objects name: a workload "
        "cluster, the Keystone of an OpenStack cloud. Then tokens and passwords are sent in clear.",
    ),
    cfg.BoolOpt(
        "verify_tls_without_ca",
        default=True,
        help="Verify a cluster's certificate against the system's CAs if its VIM has no ssl_ca_cert. False accepts any "
        "certificate, as Tacker's own driver does.",
    ),
    cfg.FloatOpt(
        "sync_timeout",
        default=5.0,
        min=0.1,
        help="Seconds for which the database synchronization waits for a cluster. Tacker looks at all VNF instances one "
        "after another. A cluster that does not respond is asked once in each round.",
    ),
    cfg.BoolOpt(
        "credentials_from_vim",
        default=False,
        help="Read the credentials and the CA of the registered VIM at each operation, instead of the copy that Tacker "
        "stores in vimConnectionInfo of each VNF instance. One update of the VIM then holds for all its instances, also "
        "for the retry of an operation in FAILED_TEMP. It applies to instances whose vimId and endpoint are those of a "
        "VIM registered in their project; vimConnectionInfo.accessInfo of these is ignored. Not for management drivers of "
        "packages, such as the credential sender: they have the copy.",
    ),
    cfg.BoolOpt(
        "allow_delete_guests",
        default=False,
        help="Whether requests may set delete-guests, if their users have the policy rule "
        "``os_nfv_orchestration_api_v2:k8s_cr:delete_guests``, by default admins.",
    ),
    *POLICY,
    *GRANTS,
    cfg.BoolOpt(
        "restrict_tenants",
        default=True,
        help="Whether users without the policy rule ``os_nfv_orchestration_api_v2:k8s_cr:unrestricted``, by default the role "
        "admin, are tenants: their packages contain only what an allowlist has.",
    ),
    cfg.StrOpt(
        "tenant_pod_security",
        default=tenants.LEVELS[0],
        choices=tenants.LEVELS,
        help="What the label ``pod-security.kubernetes.io/enforce`` says at least in each Namespace that a tenant makes.",
    ),
    cfg.ListOpt(
        "allowed_scripts",
        default=[],
        help="SHA-256 digests of scripts that the VNFD of a package may name, beside those of this project, for users without "
        "the policy rule ``os_nfv_orchestration_api_v2:k8s_cr:unrestricted``. Tacker runs a script as its own user. What a "
        "script can import of the package counts as one. ``k8s-cr check-package`` prints the digests. ``*`` allows all.",
    ),
    cfg.FloatOpt(
        "max_wait_timeout",
        default=3600.0,
        min=1,
        help="Seconds that wait-timeout of a request, and the gracefulTerminationTimeout of a terminate, may have each. An "
        "operation holds a worker of the conductor for that time. Also the default of the management drivers of clusters on "
        "servers.",
    ),
    cfg.FloatOpt(
        "project_share",
        default=0.5,
        min=0.01,
        max=1,
        help="Part of the workers of a conductor (``executor_thread_pool_size``) that the operations of one project, or those "
        "of the clusters on servers of one OpenStack project, may hold at the same time. A further operation fails at "
        "once, and can be retried. 1 for a site with one project.",
    ),
    cfg.IntOpt("max_objects", default=_LIMITS.max_objects, min=1, help="Objects that a VNF package may have."),
    cfg.IntOpt(
        "max_kinds",
        default=_LIMITS.max_kinds,
        min=1,
        help="Kinds of objects that a VNF package may have. An operation watches or lists each of them.",
    ),
    cfg.IntOpt(
        "max_watches",
        default=WATCH_LIMITS.operation,
        min=1,
        help="Kinds that one operation watches. Each is a thread and a connection. It lists further kinds at intervals: it "
        "notices changes of these after seconds.",
    ),
    cfg.IntOpt(
        "max_process_watches",
        default=WATCH_LIMITS.process,
        min=1,
        help="Kinds that all operations of a conductor process watch together; further ones are listed.",
    ),
    cfg.IntOpt(
        "max_replicas",
        default=_LIMITS.max_replicas,
        min=1,
        help="Replicas that an object of a VNF package may have. The record of an instance lists each VNFC.",
    ),
    cfg.IntOpt("max_vnfcs", default=VNFCS, min=1, help="VNFCs that a VNF instance may have."),
]


RECEIVER = [
    cfg.StrOpt("url", help="The https URL to which the credential sender sends the kubeconfigs of workload clusters."),
    cfg.StrOpt("hmac_key_file", help="File with the key of the receiver, at least 32 bytes. Each VNF instance signs with a "
               "key that is made of it, of the project and of the instance."),
    cfg.StrOpt("ca_file", help="File with the CAs that may sign the receiver's certificate, as PEM; else those of the host."),
    cfg.StrOpt("bearer_token_file", help="File with a bearer token for the receiver."),
    cfg.StrOpt("client_certificate_file", help="File with a certificate, as PEM, for mutual TLS."),
    cfg.StrOpt("client_key_file", help="File with the key of that certificate."),
    cfg.ListOpt("projects", default=[], help="Ids of the projects whose instances may use it; empty for all projects."),
]  # fmt: skip
"""In the group ``[k8s_cr_receiver:NAME]`` of a receiver that packages and requests choose by NAME."""
SSH_KEY = "k8s_cr_ssh_key"
SSH_KEY_OPTIONS = [
    cfg.StrOpt("private_key", help="Path of a private key of OpenSSH, without a passphrase."),
    cfg.ListOpt("hosts", default=[], help="Addresses and networks of the servers that this key opens."),
    cfg.StrOpt("keystone", default="", help="URL of the Keystone of the cloud in which these servers are."),
    cfg.ListOpt("projects", default=[], help="Ids of the OpenStack projects there whose servers this key opens."),
]
"""Of a group ``[k8s_cr_ssh_key:NAME]``, which packages and requests choose by NAME."""
VIM_CLOUD = "k8s_cr_vim_cloud"
VIM_CLOUD_OPTIONS = [
    cfg.StrOpt("clouds_file", default="", help="Path of a clouds.yaml with credentials for Tacker's own API."),
    cfg.StrOpt("cloud", default="tacker", help="The entry of that file. New clusters become VIMs of its project."),
    cfg.StrOpt("keystone", default="", help="URL of the Keystone of the cloud in which the servers of such clusters are."),
    cfg.ListOpt("projects", default=[], help="Ids of the OpenStack projects there whose clusters become VIMs."),
]
"""Of a group ``[k8s_cr_vim_cloud:NAME]``, which packages and requests choose by NAME."""
LOAD_BALANCER = "k8s_cr_load_balancer"
LOAD_BALANCER_OPTIONS = [
    cfg.StrOpt("address", help="IP address of the load balancer, for SSH."),
    cfg.StrOpt("username", help="The user there, who may call sudo without a password."),
    cfg.StrOpt("private_key", help="Path of a private key of OpenSSH, without a passphrase, that opens it."),
    cfg.ListOpt("projects", default=[], help="Ids of the projects of Tacker whose instances may expose NodePorts there."),
]
"""Of a group ``[k8s_cr_load_balancer:NAME]``, which requests of CNFs choose by NAME."""
HEAT_OPTIONS = [
    cfg.BoolOpt("heat_verify_cert", default=False),
    cfg.StrOpt("heat_ca_cert_file", default=""),
]
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
    allowed = [*options.allowed_receivers]
    if group := _group(options.conf, f"k8s_cr:{project}", [_option("allowed_receivers")]):
        allowed += group.allowed_receivers
    return EndpointRules(tuple(allowed), plain_http=True, option="[k8s_cr] allowed_receivers")


def receiver(conf: cfg.ConfigOpts, name: str) -> Any:
    """The options of the receiver that the operator has given that name; None without one."""
    return _group(conf, f"k8s_cr_receiver:{name}", RECEIVER)


def _option(name: str) -> cfg.Opt:
    return next(one for one in OPTIONS if one.name == name)


def _group(conf: cfg.ConfigOpts, name: str, options: list[cfg.Opt]) -> Any:
    """A group whose name has a part of its own; None if no file has it."""
    if name not in conf.list_all_sections():
        return None
    conf.register_opts(options, group=name)
    return conf[name]


def ssh_rules(options: Any) -> EndpointRules:
    """To which servers the management drivers of clusters on servers connect."""
    return EndpointRules(tuple(options.allowed_ssh_hosts), plain_http=True, option="[k8s_cr] allowed_ssh_hosts")


def ssh_key(options: Any, name: str, keystone: str, project: Callable[[], str]) -> tuple[str, EndpointRules]:
    """In such a script: the private key that the operator has under this name, and the hosts that may see it used.

    `keystone` is the URL of the VIM, and `project` asks it for the id of the project that has logged in: the servers of others
    are not those of whoever names the key. Raises InvalidRequest, and Forbidden for another cloud or project.
    """
    group = f"{SSH_KEY}:{name}"
    found = _group(options.conf, group, SSH_KEY_OPTIONS)
    if found is None:
        raise InvalidRequest(f"ssh_key: the conductor has no key {name!r}; the operator adds it as group [{group}]")
    if not found.hosts:
        raise InvalidRequest(f"ssh_key: hosts of [{group}] names none; ask the operator")
    _check_project(found, f"ssh_key: the operator has the key {name}", group, keystone, project)
    try:
        key = Path(found.private_key).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError, cfg.Error, TypeError):
        raise InvalidRequest(f"ssh_key: private_key of [{group}] cannot be read; ask the operator") from None
    return key, EndpointRules(tuple(found.hosts), plain_http=True, option=f"hosts, in the group {group},")


def vim_cloud(options: Any, name: str, keystone: str, project: Callable[[], str]) -> tuple[Path, str]:
    """In such a script: the clouds.yaml, and its entry, by which the operator lets clusters of that project become VIMs.

    All as for `ssh_key`. Raises InvalidRequest, and Forbidden for another cloud or project.
    """
    group = f"{VIM_CLOUD}:{name}"
    found = _group(options.conf, group, VIM_CLOUD_OPTIONS)
    if found is None or not found.clouds_file:
        raise InvalidRequest(f"vim_cloud: the conductor has no cloud {name!r}; the operator adds it as group [{group}]")
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
    group = f"{LOAD_BALANCER}:{name}"
    found = _group(options.conf, group, LOAD_BALANCER_OPTIONS)
    if found is None:
        raise InvalidRequest(f"load_balancer: the conductor has no load balancer {name!r}; the operator adds it as [{group}]")
    if not project or project not in found.projects:
        raise Forbidden(f"load_balancer: the operator has {name} for other projects; ask for projects of [{group}]")
    try:
        return LoadBalancer(found.address or "", found.username or "", Path(found.private_key).read_text(encoding="ascii"))
    except (OSError, UnicodeDecodeError, cfg.Error, TypeError):
        raise InvalidRequest(f"load_balancer: private_key of [{group}] cannot be read; ask the operator") from None


def heat_verification(options: Any) -> bool | str:
    """How Tacker's OpenStack driver verifies the services of a cloud: not, by the system's CAs, or by the CA at this path."""
    options.conf.register_opts(HEAT_OPTIONS, group="v2_vnfm")
    own = options.conf.v2_vnfm
    return (own.heat_ca_cert_file or True) if own.heat_verify_cert else False


def policies(conf: cfg.ConfigOpts, ids: Iterable[str]) -> dict[str, Policy]:
    """The policies of all, and of the projects and VIMs with these ids for which tacker.conf has a group, by group."""
    named = {group: _group(conf, group, POLICY) for group in (f"k8s_cr:{one}" for one in ids)}
    return {group: _policy(found) for group, found in {"k8s_cr": conf.k8s_cr, **named}.items() if found is not None}


def tenant_rules(conf: cfg.ConfigOpts, project: str, may_use: Callable[[str], str]) -> tenants.Rules:
    """What tenants of a project may have: by [k8s_cr], and more by the group of the project."""
    groups = [group for group in (conf.k8s_cr, _group(conf, f"k8s_cr:{project}", GRANTS)) if group is not None]
    return tenants.Rules(
        tenant_kinds=[one for group in groups for one in group.tenant_kinds],
        tenant_cluster_roles=[one for group in groups for one in group.tenant_cluster_roles],
        tenant_external_names=[one for group in groups for one in group.tenant_external_names],
        tenant_namespace_labels=[one for group in groups for one in group.tenant_namespace_labels],
        allow_service_addresses=any(group.allow_service_addresses for group in groups),
        tenant_pod_security=conf.k8s_cr.tenant_pod_security,
        may_use=may_use,
    )


def given_namespaces(conf: cfg.ConfigOpts, project: str) -> list[str]:
    """Patterns of the namespaces that the operator gives a project."""
    group = _group(conf, f"k8s_cr:{project}", POLICY)
    return [] if group is None else list(group.allowed_namespaces)


def reserved_namespaces(conf: cfg.ConfigOpts, ids: Iterable[str]) -> list[str]:
    """Patterns of those that groups of other projects and VIMs than these have; `*` reserves nothing."""
    own = {f"k8s_cr:{one}" for one in ids}
    others = (_group(conf, name, POLICY) for name in conf.list_all_sections() if name.startswith("k8s_cr:") and name not in own)
    return [pattern for group in others for pattern in group.allowed_namespaces if pattern.strip("*")]


def _policy(options: Any) -> Policy:
    """The policy that the options with the names of its fields give."""
    values: dict[str, Any] = {field.name: options[field.name] for field in fields(Policy) if field.name in options}
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return Policy(**{**values, **lists})


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """For oslo-config-generator."""
    keys, clouds = (f"{SSH_KEY}:name", SSH_KEY_OPTIONS), (f"{VIM_CLOUD}:name", VIM_CLOUD_OPTIONS)
    balancers = (f"{LOAD_BALANCER}:name", LOAD_BALANCER_OPTIONS)
    return [("k8s_cr", OPTIONS), ("k8s_cr_receiver:name", RECEIVER), keys, clouds, balancers]
