# SPDX-License-Identifier: Apache-2.0
"""A list ends, whatever the server sends as its pages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from k8s_cr_driver.engine.run.operation import Operation
from k8s_cr_driver.errors import TransportError
from k8s_cr_driver.kube import lists
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.kube.lists import pages
from tests.fake_api import FakeApi, faults
from tests.instance import BLUE, config_map

MAPS = "/api/v1/namespaces/default/configmaps"


def send(api: FakeApi, *tokens: str, items: bool = True, times: int = 1) -> None:
    """The next pages refer to these tokens."""
    for token in tokens:
        page: dict[str, Any] = {"items": [config_map("a")] if items else [], "metadata": {"continue": token}}
        api.fail(faults.lie(json.dumps(page).encode()), path="configmaps$", times=times)


def count(api: FakeApi, **options: Any) -> int:
    with Connection(Endpoint(api.url), **options) as connection:
        return len(list(pages(connection, MAPS)))


def test_a_few_empty_pages_are_followed(api: FakeApi) -> None:
    send(api, "a", "b", "c", "", items=False)
    assert count(api) == 4


@pytest.mark.parametrize("tokens", [["x"], ["x", "y"]])
def test_a_list_whose_pages_repeat_is_given_up(api: FakeApi, tokens: list[str]) -> None:
    send(api, *tokens, "x")
    with pytest.raises(TransportError, match=rf"^LIST {MAPS}: .*refers to itself or an earlier page"):
        count(api)
    assert len(api.requests) == len(tokens) + 1


def test_a_list_that_the_server_has_forgotten_may_be_begun_again(api: FakeApi) -> None:
    send(api, "x")
    api.fail(faults.gone(), query={"continue": "x"})
    operation = Operation("test", BLUE, 60)
    assert operation.persist(lambda: count(api)) == 1
    assert [one.query.get("continue") for one in api.requests] == [None, "x", None]


def test_a_list_of_empty_pages_is_given_up(api: FakeApi) -> None:
    send(api, *map(str, range(lists.EMPTY_PAGES + 5)), items=False)
    with pytest.raises(TransportError, match="pages in a row are empty"):
        count(api)


def test_a_list_has_a_limited_number_of_pages(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lists.PAGE * lists.PAGES >= 100_000
    monkeypatch.setattr(lists, "PAGES", 3)
    send(api, "a", "b", "")
    assert count(api) == 3
    send(api, "a", "b", "c")
    with pytest.raises(TransportError, match="more than 3 pages"):
        count(api)


@pytest.mark.parametrize("limit, most, words", [("LIST_BYTES", 1000, "1000 bytes"), ("LIST_VALUES", 100, "100 values")])
def test_a_list_has_a_limited_size(api: FakeApi, monkeypatch: pytest.MonkeyPatch, limit: str, most: int, words: str) -> None:
    """Each page may be of a size that is allowed."""
    monkeypatch.setattr(lists, limit, most)
    send(api, *map(str, range(20)))
    with pytest.raises(TransportError, match=f"more than {words}"):
        count(api)
    assert 1 < len(api.requests) < 20


def test_a_list_lasts_a_limited_time(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "LIST_LIMIT", -1.0)
    assert count(api) == 1
    send(api, "a")
    with pytest.raises(TransportError, match="lasts longer"):
        count(api)


@pytest.mark.parametrize("options", [{"deadline": 0.0}, {"is_stopped": lambda: True}])
def test_a_list_of_an_operation_that_has_ended_is_given_up(api: FakeApi, options: dict[str, Any]) -> None:
    send(api, "a")
    with pytest.raises(TransportError, match="the operation has ended"):
        count(api, **options)


def test_commas_within_a_text_are_no_values(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "LIST_VALUES", 100)
    page: dict[str, Any] = {"items": [config_map("a", csv="1,2,3,4\n" * 20_000)], "metadata": {"continue": "x"}}
    api.fail(faults.lie(json.dumps(page).encode()), path="configmaps$")
    send(api, "")
    assert count(api) == 2
