"""The tool, and limits that are short for tests."""

from pathlib import Path

import pytest

from tests.cli.tool import Tool
from tests.engine.conftest import impatience  # noqa: F401 (a fixture)
from tests.fake_api import FakeApi


@pytest.fixture
def tool(api: FakeApi, tmp_path: Path) -> Tool:
    return Tool(api, tmp_path)
