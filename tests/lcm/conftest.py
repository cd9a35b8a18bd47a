# SPDX-License-Identifier: Apache-2.0
"""Tests with Tacker's own objects run in a process of their own: importing them patches sockets with eventlet.

As tacker-conductor does, the threading backend of oslo.service is chosen before anything of Tacker is imported; the
conductor of Tacker 15 runs on eventlet, with which pytest is to be started.
"""

import importlib.util
from pathlib import Path

import pytest
from oslo_config import cfg
from oslo_service import backend

from k8s_cr_driver.lcm import conf
from tests.fake_api import FakeApi
from tests.lcm.web import run_web

if importlib.util.find_spec("tacker.cmd.conductor"):
    backend.init_backend(backend.BackendType.THREADING)


def pytest_configure(config: pytest.Config) -> None:
    """A socket whose handshake has failed is closed by its reference count with eventlet: GreenSSLSocket.__init__ does not."""
    unclosed = "ignore:Exception ignored in. <eventlet.green.ssl.GreenSSLSocket"
    config.addinivalue_line("filterwarnings", f"{unclosed}:pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True, scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tacker's database, which every verb reads; a file, so that each thread has a connection of its own."""
    from oslo_db import options
    from tacker.db import api, model_base
    from tacker.db.db_sqlalchemy.models import VnfPackage, VnfPackageUserData, VnfPackageVnfd
    from tacker.db.nfvo import nfvo_db
    from tacker.sol_refactored.db.sqlalchemy import models

    cfg.CONF.import_opt("use_credential_encryption", "tacker.common.config")
    options.set_defaults(cfg.CONF, connection=f"sqlite:///{tmp_path_factory.mktemp('database')}/tacker.db")
    kinds = (models.VnfInstanceV2, models.VnfLcmOpOccV2, models.GrantRequestV1, models.GrantV1, models.LccnSubscriptionV2)
    kinds += (nfvo_db.Vim, nfvo_db.VimAuth, VnfPackage, VnfPackageUserData, VnfPackageVnfd)
    model_base.BASE.metadata.create_all(api.get_engine(), [kind.__table__ for kind in kinds])


@pytest.fixture
def cluster(api: FakeApi) -> FakeApi:
    """The fake API server with the controller of the Deployment `web`."""
    run_web(api)
    return api


@pytest.fixture
def options_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The conductor's file of options, with those of a test bed, as scripts that it runs find it."""
    path = tmp_path / "tacker.conf"
    path.write_text("[k8s_cr]\nallowed_endpoints = *\nallowed_receivers = *\n")
    parsed = cfg.ConfigOpts()
    parsed([f"--config-file={path}"])
    monkeypatch.setenv(conf._FILES, "")
    conf.publish(parsed)
    return path


@pytest.fixture(autouse=True)
def without_policy_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tacker looks for its policy.yaml beside the files of its configuration; there are none."""
    monkeypatch.setattr(cfg.CONF, "find_file", lambda _: None)
