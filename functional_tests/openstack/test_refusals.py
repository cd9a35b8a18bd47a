# SPDX-License-Identifier: Apache-2.0
"""What a cloud refuses can be provoked, and is in its own words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

import openstack
import pytest
from keystoneauth1 import exceptions
from keystoneauth1.identity import v3
from openstack.exceptions import BadRequestException, ForbiddenException

from ..testbed.ledger import Ledger
from ..testbed.openstack import offer
from .conftest import MakeServer, Site, away, eventually


@pytest.fixture
def quota(admin: openstack.connection.Connection, tenant: openstack.connection.Connection) -> Iterator[None]:
    """The tenant may have no server."""
    admin.compute.update_quota_set(tenant.current_project_id, instances=0)
    yield
    admin.compute.update_quota_set(tenant.current_project_id, instances=offer.UNLIMITED)


@pytest.mark.alone("openstack")
@pytest.mark.usefixtures("quota")
def test_a_server_beyond_the_quota(make_server: MakeServer):
    with pytest.raises(ForbiddenException, match="Quota exceeded for instances"):
        make_server("refused")


@pytest.fixture
def huge(admin: openstack.connection.Connection) -> Iterator[str]:
    """A flavor that no host has room for."""
    flavor = admin.compute.create_flavor(name="huge", ram=1 << 30, vcpus=1, disk=1)
    yield flavor.id
    admin.compute.delete_flavor(flavor)


def test_a_flavor_that_no_host_has_room_for(tenant: openstack.connection.Connection, site: Site, huge: str):
    image = tenant.image.find_image("debian").id
    server = tenant.compute.create_server(name="big", image_id=image, flavor_id=huge, networks=[{"uuid": site.network}])
    try:
        eventually(lambda: tenant.compute.get_server(server).status == "ERROR", "the server is in ERROR")
        assert "No valid host was found" in tenant.compute.get_server(server).fault["message"]
    finally:
        tenant.compute.delete_server(server)
        tenant.compute.wait_for_delete(server, interval=0.2, wait=60)


@pytest.mark.parametrize(("field", "message"), [("image_id", "image"), ("flavor_id", "Flavor")])
def test_an_image_or_a_flavor_that_is_not_there(make_server: MakeServer, field: str, message: str):
    with pytest.raises(BadRequestException, match=message):
        make_server("refused", **{field: "00000000-0000-0000-0000-000000000000"})


def test_credentials_that_are_wrong_and_an_application_credential_that_has_expired(
    tenant: openstack.connection.Connection,
):
    expiry = (datetime.now(timezone.utc) + timedelta(seconds=8)).replace(tzinfo=None).isoformat()
    made = tenant.identity.create_application_credential(tenant.current_user_id, "short", expires_at=expiry)
    try:
        assert opens(tenant, made.id, made.secret)
        assert not opens(tenant, made.id, "wrong")
        eventually(lambda: not opens(tenant, made.id, made.secret), "the application credential has expired", 30)
    finally:
        tenant.identity.delete_application_credential(tenant.current_user_id, made)


def opens(tenant: openstack.connection.Connection, identifier: str, secret: str) -> bool:
    """Does Keystone give a token for the application credential? False if it says 401."""
    plugin = v3.ApplicationCredential(
        tenant.config.get_auth_args()["auth_url"], application_credential_id=identifier,
        application_credential_secret=secret,
    )  # fmt: skip
    try:
        return bool(plugin.get_token(tenant.session))
    except exceptions.Unauthorized:
        return False


@pytest.mark.alone("openstack")
def test_keystone_that_is_away_for_a_while(tenant: openstack.connection.Connection, ledger: Ledger):
    auth_url = tenant.config.get_auth_args()["auth_url"]
    with away(ledger, "keystone"), pytest.raises(exceptions.ConnectTimeout):
        tenant.session.get(auth_url, timeout=1, connect_retries=0)
    assert tenant.session.get(auth_url, timeout=20).ok
