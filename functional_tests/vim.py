# SPDX-License-Identifier: Apache-2.0
"""What Tacker must know of a cluster: the vimConnectionInfo of vimType ETSINFV.KUBERNETES.V_1.

Tacker logs in with a bearer token, not with the client certificate of a kubeconfig, so the cluster's administrator
makes a service account for it, as Tacker's documentation instructs operators to.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

NAMESPACE = "kube-system"
ACCOUNT = "k8s-cr-driver-tests"
_OURS = {"app.kubernetes.io/managed-by": ACCOUNT}
# No test or demo outlives it.
TOKEN_SECONDS = 24 * 3600


def connection_info(kubeconfig: Path, account: str = ACCOUNT, role: str = "cluster-admin") -> dict[str, Any]:
    """A VimConnectionInfo with the permissions of a ClusterRole, for use in requests; its token is valid for a day."""
    with config.new_client_from_config(str(kubeconfig)) as api:
        _make_account(api, account, role)
        interface = {"endpoint": api.configuration.host}
        if authority := api.configuration.ssl_ca_cert:  # else that of the host
            interface["ssl_ca_cert"] = Path(authority).read_text()
        return {
            "vimType": "ETSINFV.KUBERNETES.V_1",
            "interfaceInfo": interface,
            "accessInfo": {"bearer_token": token(api, account, NAMESPACE)},
        }


def forget(kubeconfig: Path) -> None:
    """Deletes the accounts that `connection_info` has made."""
    [(name, value)] = _OURS.items()
    selector = f"{name}={value}"
    with config.new_client_from_config(str(kubeconfig)) as api:
        client.CoreV1Api(api).delete_collection_namespaced_service_account(NAMESPACE, label_selector=selector)
        client.RbacAuthorizationV1Api(api).delete_collection_cluster_role_binding(label_selector=selector)


def token(api: client.ApiClient, account: str, namespace: str) -> str:
    """A new bearer token of a service account, valid for a day."""
    wanted = client.AuthenticationV1TokenRequest(
        spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=TOKEN_SECONDS)
    )
    made = client.CoreV1Api(api).create_namespaced_service_account_token(account, namespace, wanted)
    return str(made.to_dict()["status"]["token"])


def _make_account(api: client.ApiClient, name: str, role: str) -> None:
    account = client.V1ServiceAccount(metadata=client.V1ObjectMeta(name=name, labels=_OURS))
    binding = client.V1ClusterRoleBinding(
        metadata=client.V1ObjectMeta(name=name, labels=_OURS),
        role_ref=client.V1RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name=role),
        subjects=[client.RbacV1Subject(kind="ServiceAccount", name=name, namespace=NAMESPACE)],
    )
    _unless_there(lambda: client.CoreV1Api(api).create_namespaced_service_account(NAMESPACE, account))
    _unless_there(lambda: client.RbacAuthorizationV1Api(api).create_cluster_role_binding(binding))


def _unless_there(create: Callable[[], object]) -> None:
    try:
        create()
    except ApiException as error:
        if error.status != 409:
            raise
