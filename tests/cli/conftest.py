# SPDX-License-Identifier: Apache-2.0
"""The tool on a fake API server."""

from pathlib import Path

import pytest

from tests.cli.tool import Tool
from tests.fake_api import FakeApi


@pytest.fixture
def tool(api: FakeApi, tmp_path: Path) -> Tool:
    return Tool(api, tmp_path)
