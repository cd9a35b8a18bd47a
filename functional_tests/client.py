# SPDX-License-Identifier: Apache-2.0
"""Tacker's public REST API as the demo and the functional tests use it: VNF packages (v1) and VNF LCM (v2).

Methods that start an LCM operation return its id, a VnfLcmOpOcc's; `wait` waits for its end. Bodies are plain dicts as
SOL003 and SOL005 describe them. Tacker notifies only subscribers with a web server of a change of state, so states
are polled.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from keystoneauth1 import adapter, session
from keystoneauth1.identity import v3
from requests import Response

from .testbed.processes import until

Body = dict[str, Any]
Onboarding = Callable[[Callable[[], str]], AbstractContextManager[object]]

PAUSE = 0.3
# Seconds; some are enough for 3 MB of manifests on two cores that have nothing else to do, not while images are loaded.
ONBOARDING = 120.0
# A conductor waits 10 s for the lock of an instance before it drops a request.
RESUME_PATIENCE = 15
# Seconds, for the usage state of a package.
RELEASED_WITHIN = 30
SETTLED = {"COMPLETED", "FAILED_TEMP", "FAILED", "ROLLED_BACK"}

_VIMS = "/v1.0/vims"
_PACKAGES = "/vnfpkgm/v1/vnf_packages"
_INSTANCES = "/vnflcm/v2/vnf_instances"
_OPERATIONS = "/vnflcm/v2/vnf_lcm_op_occs"


class ApiError(Exception):
    """Tacker has refused a request. `problem` is its ProblemDetails, or what there was in its place."""

    def __init__(self, request: str, status: int, problem: Body) -> None:
        super().__init__(f"{request} was answered {status}: {problem.get('detail') or problem}")
        self.status, self.problem = status, problem


class OnboardingError(Exception):
    """Tacker has taken a package and then refused it. Its API does not tell why."""


class OperationError(Exception):
    """An operation has ended in another state than was waited for. `operation` is the VnfLcmOpOcc."""

    def __init__(self, operation: Body) -> None:
        reason = operation.get("error", {}).get("detail", "Tacker gives no error")
        super().__init__(f"{operation['operation']} {operation['id']} is {operation['operationState']}: {reason}")
        self.operation = operation


class Client:
    """Tacker as found in the catalog of the Keystone that the OS_* variables in `environment` name.

    A VNF package is uploaded within `onboarding`, which is given what reads the package's onboardingState; see
    `testbed.tacker.onboarding`.
    """

    def __init__(self, environment: Mapping[str, str], onboarding: Onboarding = nullcontext) -> None:
        self._onboarding = onboarding
        auth = v3.Password(
            environment["OS_AUTH_URL"],
            username=environment["OS_USERNAME"],
            password=environment["OS_PASSWORD"],
            user_domain_name=environment["OS_USER_DOMAIN_NAME"],
            project_name=environment["OS_PROJECT_NAME"],
            project_domain_name=environment["OS_PROJECT_DOMAIN_NAME"],
        )
        self._http = adapter.Adapter(
            session.Session(auth),
            service_type="nfv-orchestration",
            region_name=environment["OS_REGION_NAME"],
            raise_exc=False,
        )

    def read(self, path: str, version: str = "1.0.0") -> Any:
        """The answer to any GET, at an API version of SOL013."""
        return self._request("GET", path, headers={"Version": version}).json()

    # --- packages ---------------------------------------------------------------------------------------------------

    def onboard(self, csar: Path) -> Body:
        """Upload a VNF package, and wait until it can be used; its VnfPkgInfo."""
        package_id = self._call("POST", _PACKAGES, {}).json()["id"]

        def state() -> str:
            return str(self.package(package_id)["onboardingState"])

        with self._onboarding(state):
            with csar.open("rb") as content:
                headers = {"Content-Type": "application/zip"}
                self._request("PUT", f"{_PACKAGES}/{package_id}/package_content", data=content, headers=headers)
            package = self._poll(
                lambda: self.package(package_id),
                lambda found: found["onboardingState"] not in ("UPLOADING", "PROCESSING"),
                ONBOARDING, f"package {csar.name} to be onboarded",
            )  # fmt: skip
        if package["onboardingState"] != "ONBOARDED":
            raise OnboardingError(f"Tacker could not onboard {csar.name}; the reason is in a log of its conductors")
        return package

    def packages(self) -> list[Body]:
        """Tacker lists the ids, then reads each: one that is deleted in between makes it answer 500, see its
        `vnf_package_list.get_by_marker_filter`.
        """
        deadline = time.monotonic() + ONBOARDING
        while True:
            try:
                found: list[Body] = self._call("GET", _PACKAGES).json()
                return found
            except ApiError as error:
                if "VnfPackageNotFound" not in str(error) or time.monotonic() > deadline:
                    raise

    def package(self, package_id: str) -> Body:
        found: Body = self._call("GET", f"{_PACKAGES}/{package_id}").json()
        return found

    def delete_package(self, package_id: str) -> None:
        """Waits until it is in use no longer: a conductor writes that after the end of an operation."""
        if self.package(package_id)["operationalState"] == "ENABLED":
            self._call("PATCH", f"{_PACKAGES}/{package_id}", {"operationalState": "DISABLED"})
        until(lambda: self.package(package_id)["usageState"] == "NOT_IN_USE", RELEASED_WITHIN, PAUSE)
        self._call("DELETE", f"{_PACKAGES}/{package_id}")

    # --- VIMs -------------------------------------------------------------------------------------------------------

    def register_vim(self, name: str, vim: Body) -> str:
        """Under a name, with what a VimConnectionInfo says of it; its id."""
        interface = vim["interfaceInfo"]
        credentials = {**vim["accessInfo"], "ssl_ca_cert": interface["ssl_ca_cert"]}
        body = {"name": name, "type": "kubernetes", "auth_url": interface["endpoint"], "auth_cred": credentials}
        made: str = self._call("POST", _VIMS, {"vim": {**body, "vim_project": {"name": "default"}}}).json()["vim"]["id"]
        return made

    def update_vim(self, vim_id: str, **credentials: str) -> None:
        self._call("PUT", f"{_VIMS}/{vim_id}", {"vim": {"auth_cred": credentials}})

    def vims(self) -> list[Body]:
        found: list[Body] = self._call("GET", _VIMS).json()["vims"]
        return found

    def delete_vim(self, vim_id: str) -> None:
        self._call("DELETE", f"{_VIMS}/{vim_id}")

    # --- instances --------------------------------------------------------------------------------------------------

    def create(self, vnfd_id: str, name: str = "") -> Body:
        """A VNF instance that is not instantiated yet."""
        made: Body = self._call("POST", _INSTANCES, {"vnfdId": vnfd_id, "vnfInstanceName": name}).json()
        return made

    def instance(self, instance_id: str) -> Body:
        found: Body = self._call("GET", f"{_INSTANCES}/{instance_id}").json()
        return found

    def instances(self) -> list[Body]:
        found: list[Body] = self._call("GET", _INSTANCES).json()
        return found

    def modify(self, instance_id: str, **attributes: Any) -> str:
        """The id of the operation, which is an LCM operation as well."""
        answer = self._call("PATCH", f"{_INSTANCES}/{instance_id}", attributes)
        return str(answer.headers["Location"]).rpartition("/")[2]

    def delete(self, instance_id: str) -> None:
        self._call("DELETE", f"{_INSTANCES}/{instance_id}")

    def instantiate(
        self, instance_id: str, vim: Body, additional_params: Body, *, flavour: str = "simple", **more: Any
    ) -> str:
        """`vim` is a VimConnectionInfo; the paths of the manifests are among the additional parameters.

        more: other attributes of the request.
        """
        return self._start(
            instance_id, "instantiate",
            flavourId=flavour, vimConnectionInfo={"vim1": vim}, additionalParams=additional_params, **more,
        )  # fmt: skip

    def scale(
        self, instance_id: str, direction: str, aspect: str, steps: int = 1, additional_params: Body | None = None
    ) -> str:
        """`direction` is SCALE_OUT or SCALE_IN."""
        return self._start(
            instance_id, "scale",
            type=direction, aspectId=aspect, numberOfSteps=steps, additionalParams=additional_params or {},
        )  # fmt: skip

    def heal(self, instance_id: str, vnfcs: list[str] | None = None, additional_params: Body | None = None) -> str:
        """`vnfcs` are ids of vnfcInfo; without them the whole instance is healed."""
        chosen = {"vnfcInstanceId": vnfcs} if vnfcs else {}
        return self._start(instance_id, "heal", **chosen, additionalParams=additional_params or {})

    def change_package(self, instance_id: str, vnfd_id: str, additional_params: Body, vim: Body | None = None) -> str:
        """`vim` takes the place of the VimConnectionInfo of instantiate."""
        moved = {"vimConnectionInfo": {"vim1": vim}} if vim else {}
        return self._start(instance_id, "change_vnfpkg", vnfdId=vnfd_id, additionalParams=additional_params, **moved)

    def terminate(self, instance_id: str, *, graceful_timeout: int | None = None, additional_params: Body | None = None) -> str:
        """GRACEFUL when `graceful_timeout`, in seconds, is given; else FORCEFUL."""
        kind: Body = {"terminationType": "FORCEFUL"}
        if graceful_timeout is not None:
            kind = {"terminationType": "GRACEFUL", "gracefulTerminationTimeout": graceful_timeout}
        return self._start(instance_id, "terminate", **kind, additionalParams=additional_params or {})

    # --- operations -------------------------------------------------------------------------------------------------

    def operation(self, operation_id: str) -> Body:
        found: Body = self._call("GET", f"{_OPERATIONS}/{operation_id}").json()
        return found

    def operations(self, instance_id: str) -> list[Body]:
        """Every operation of the instance, also of one that is deleted."""
        found: list[Body] = self._call("GET", f"{_OPERATIONS}?filter=(eq,vnfInstanceId,{instance_id})").json()
        return found

    def wait(self, operation_id: str, state: str = "COMPLETED", timeout: float = 300) -> Body:
        """The VnfLcmOpOcc once it is in `state`. OperationError when it comes to rest in another one."""
        operation = self._poll(
            lambda: self.operation(operation_id),
            lambda found: found["operationState"] in {state, *SETTLED},
            timeout, f"operation {operation_id} to be {state}",
        )  # fmt: skip
        if operation["operationState"] != state:
            raise OperationError(operation)
        return operation

    def retry(self, operation_id: str) -> None:
        """Try a FAILED_TEMP operation again; returns when a conductor has begun with it."""
        self._resume(operation_id, "retry")

    def roll_back(self, operation_id: str) -> None:
        """Roll a FAILED_TEMP operation back; returns when a conductor has begun with it."""
        self._resume(operation_id, "rollback")

    def fail(self, operation_id: str) -> Body:
        """Give a FAILED_TEMP operation up; its VnfLcmOpOcc, FAILED now."""
        given_up: Body = self._call("POST", f"{_OPERATIONS}/{operation_id}/fail").json()
        return given_up

    def _start(self, instance_id: str, verb: str, **body: Any) -> str:
        answer = self._call("POST", f"{_INSTANCES}/{instance_id}/{verb}", body)
        return str(answer.headers["Location"]).rsplit("/", 1)[-1]

    def _resume(self, operation_id: str, verb: str) -> None:
        """The answer comes before the conductor has begun, and then only the time that the state was entered distinguishes a
        new FAILED_TEMP from the old one. It is stored in whole seconds, so the old one's must be over. A conductor that
        still works on the instance drops the request, and the other one gets the next.
        """
        before = self.operation(operation_id)["stateEnteredTime"]
        end = datetime.fromisoformat(before.rstrip("Z")).replace(tzinfo=timezone.utc) + timedelta(seconds=1)
        time.sleep(max(0.0, (end - datetime.now(timezone.utc)).total_seconds()))

        def begun() -> bool:
            return bool(self.operation(operation_id)["stateEnteredTime"] != before)

        for _ in range(2):
            self._call("POST", f"{_OPERATIONS}/{operation_id}/{verb}")
            if until(begun, RESUME_PATIENCE, PAUSE):
                return
        raise TimeoutError(f"no conductor has begun the {verb} of operation {operation_id}")

    def _poll(self, read: Callable[[], Body], done: Callable[[Body], bool], timeout: float, what: str) -> Body:
        found: Body = {}

        def settled() -> bool:
            found.clear()
            found.update(read())
            return done(found)

        if not until(settled, timeout, PAUSE):
            raise TimeoutError(f"waited {timeout:g} s in vain for {what}: {found}")
        return found

    def _call(self, method: str, path: str, body: Body | None = None) -> Response:
        version = "1.0.0" if path.startswith(_PACKAGES) else "2.0.0"
        return self._request(method, path, json=body, headers={"Version": version})

    def _request(self, method: str, path: str, **options: Any) -> Response:
        answer = self._http.request(path, method, **options)
        if not answer.ok:
            try:
                problem = answer.json()
            except ValueError:
                problem = {"detail": answer.text}
            raise ApiError(f"{method} {path}", answer.status_code, problem)
        return answer
