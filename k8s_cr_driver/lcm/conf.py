# SPDX-License-Identifier: Apache-2.0
"""Options of the group [k8s_cr] in tacker.conf: what an operator sets for all instances of a conductor."""

from __future__ import annotations

from oslo_config import cfg

OPTIONS = [
    cfg.StrOpt(
        "inventory_namespace",
        default="default",
        help="Namespace, on each cluster, of the ConfigMaps that name which objects belong to which VNF instance. "
        "It must exist, and no package may bring it.",
    ),
    cfg.BoolOpt(
        "allow_remote_manifests",
        default=False,
        help="Whether lcm-kubernetes-def-files may name http and https URLs. They are read by the conductor, from its "
        "own place in the network.",
    ),
    cfg.BoolOpt(
        "verify_tls_without_ca",
        default=True,
        help="Whether a cluster's certificate is verified against the system's CAs when its VIM has no ssl_ca_cert. "
        "False accepts any certificate, as Tacker's own driver does.",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTIONS, group="k8s_cr")


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """For oslo-config-generator."""
    return [("k8s_cr", OPTIONS)]
