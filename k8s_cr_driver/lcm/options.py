# SPDX-License-Identifier: Apache-2.0
"""What an operator may set in tacker.conf: the options of each of the driver's groups. `conf` reads them."""

from __future__ import annotations

from collections.abc import Mapping

from oslo_config import cfg

from k8s_cr_driver.engine.run.operation import WATCH_LIMITS
from k8s_cr_driver.package.limits import Limits
from k8s_cr_driver.vnf import tenants
from k8s_cr_driver.vnf.counts import VNFCS

_LIMITS = Limits()

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
SSH_KEY = [
    cfg.StrOpt("private_key", help="Path of a private key of OpenSSH, without a passphrase."),
    cfg.ListOpt("hosts", default=[], help="Addresses and networks of the servers that this key opens."),
    cfg.StrOpt("keystone", default="", help="URL of the Keystone of the cloud in which these servers are."),
    cfg.ListOpt("projects", default=[], help="Ids of the OpenStack projects there whose servers this key opens."),
]
VIM_CLOUD = [
    cfg.StrOpt("clouds_file", default="", help="Path of a clouds.yaml with credentials for Tacker's own API."),
    cfg.StrOpt("cloud", default="tacker", help="The entry of that file. New clusters become VIMs of its project."),
    cfg.StrOpt("keystone", default="", help="URL of the Keystone of the cloud in which the servers of such clusters are."),
    cfg.ListOpt("projects", default=[], help="Ids of the OpenStack projects there whose clusters become VIMs."),
]
LOAD_BALANCER = [
    cfg.StrOpt("address", help="IP address of the load balancer, for SSH."),
    cfg.StrOpt("username", help="The user there, who may call sudo without a password."),
    cfg.StrOpt("private_key", help="Path of a private key of OpenSSH, without a passphrase, that opens it."),
    cfg.ListOpt("projects", default=[], help="Ids of the projects of Tacker whose instances may expose NodePorts there."),
]

OF_ID = [*POLICY, *GRANTS, *(option for option in OPTIONS if option.dest == "allowed_receivers")]
"""Of a group [k8s_cr:ID]: of a VIM those of POLICY, of a project all."""
GROUPS: Mapping[str, list[cfg.Opt]] = {
    "k8s_cr": OF_ID,
    "k8s_cr_receiver": RECEIVER,
    "k8s_cr_ssh_key": SSH_KEY,
    "k8s_cr_vim_cloud": VIM_CLOUD,
    "k8s_cr_load_balancer": LOAD_BALANCER,
}
"""Begin of a group's name, before its colon -> its options. Packages and requests choose one of its NAME after the colon."""
