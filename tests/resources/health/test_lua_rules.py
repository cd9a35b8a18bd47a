# SPDX-License-Identifier: Apache-2.0
"""Scripts of an operator judge objects in Lua, and reach nothing but the object."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.resources import explained
from k8s_cr_driver.resources.health import Health, State, lua_rules, operator_rules
from k8s_cr_driver.resources.registry import resource_for
from tests.resources.health.objects import Json, condition, custom

pytestmark = pytest.mark.skipif(not lua_rules.IS_AVAILABLE, reason="lupa is an optional extra")
BY_CONDITION = """
hs = {}
if obj.status ~= nil and obj.status.conditions ~= nil then
  for i, condition in ipairs(obj.status.conditions) do
    if condition.type == "Odd" then
      hs.status = condition.status == "True" and "Healthy" or "Degraded"
      hs.message = condition.message
      return hs
    end
  end
end
hs.status = "Progressing"
hs.message = "Waiting for " .. #obj.metadata.name
return hs
"""


@pytest.fixture(autouse=True)
def no_rules_of_operators() -> Iterator[None]:
    yield
    operator_rules.use("")


def use(folder: Path, source: str, path: str = "example.com/Widget") -> None:
    (folder / path).mkdir(parents=True, exist_ok=True)
    (folder / path / "health.lua").write_text(source)
    operator_rules.use(folder)


def judged(status: Json | None = None, **metadata: object) -> Health:
    live = custom(status, **metadata)
    return resource_for(live).health(live)


def test_script_of_a_kind_decides(tmp_path: Path) -> None:
    use(tmp_path, BY_CONDITION)
    good, bad = ({"conditions": [condition("Odd", status, "", "said")]} for status in ("True", "False"))
    assert [(one.state, one.trouble) for one in map(judged, (good, bad, None))] == [
        (State.READY, False),
        (State.WAITING, True),
        (State.WAITING, False),
    ]
    assert judged(good).source == "operator's script example.com/Widget/health.lua"
    assert judged(bad).message == "said"
    live = custom(good)
    assert [one.rule for one in explained.verdict(resource_for(live), live).asked] == ["script", "the status"]


def test_script_says_nothing_of_an_older_spec(tmp_path: Path) -> None:
    use(tmp_path, 'return {status = "Healthy"}')
    assert judged({"observedGeneration": 1, "x": 1}, generation=2).state is State.WAITING
    assert judged({"observedGeneration": 2, "x": 1}, generation=2).state is State.READY


@pytest.mark.parametrize("returned", ["nil", "{}", "5", '{status = ""}', "{message = 'a'}"])
def test_script_without_a_status_leaves_the_object_to_the_rules_of_its_kind(tmp_path: Path, returned: str) -> None:
    use(tmp_path, f"return {returned}")
    assert judged({"phase": "Ready"}).state is State.READY
    assert judged({"phase": "Broken"}).state is State.WAITING


@pytest.mark.parametrize(("path", "fits"), [("_.com/_", True), ("example.com/_", True), ("_.org/_", False), ("Widget", False)])
def test_folder_with_a_wildcard(tmp_path: Path, path: str, fits: bool) -> None:
    use(tmp_path, 'return {status = "Suspended"}', path)
    assert (judged({"x": 1}).state is State.SUSPENDED) == fits


LONG = "local a = 'a' for i = 1, 19 do a = a .. a end "
HOSTILE = [
    'return {status = io.open("/etc/passwd")}',
    'return os.execute("id")',
    'return load("return 1")()',
    'return require("os")',
    'return dofile("/etc/passwd")',
    "return debug.getregistry()",
    "return setmetatable({}, {})",
    "return pcall(error)",
    "return python.eval('1')",
    "return getmetatable('').__index",
    "return ('').dump(print)",
    "while true do end",
    "local t = {} while true do t[#t + 1] = ('x'):rep(60000) .. #t end",
    "local s = '' for i = 1, 1e9 do s = s .. i .. s end",
    "for i = 1, 1e9 do local a = ('a'):rep(60000) end",
    "return {status = ('a'):rep(1e9)}",
    "return {status = ('a'):rep(3000):match(('a-'):rep(20) .. 'b')}",
    "return {status = ('a'):rep(65000):find('a-a-b')}",
    "for i = 1, 1e9 do ('a'):rep(200):find('a-a-b') end",
    "local t = {} for i = 1, 1e5 do t[i] = i end for i = 1, 1e5 do table.insert(t, 1, 0) end",
    "return {status = table.unpack({}, 1, 1e7)}",
    "return {status = 'Healthy', message = string.char(255)}",
    "local function f() return f() + 1 end return f()",
    "return {status = ('').rep('', 1e15)}",
    LONG + "return {status = a:find(a:sub(1, #a // 2) .. 'b', 1, true)}",
    LONG + "return {status = a:find('%b()')}",
    LONG + "return {status = a:find(a:sub(1, #a // 2) .. 'b')}",
    LONG + "return {status = a:find('[' .. a .. ']b')}",
    LONG + "return {status = a:find('(a*)%1b')}",
    LONG + "while true do a:upper() end",
    LONG + "while true do a:reverse() end",
    "local t = {} for i = 1, 2e5 do t[i] = i * 7919 % 200003 end while true do table.sort(t) end",
    "local t = {} for i = 1, 2e5 do t[i] = 'x' end while true do table.concat(t) end",
    "local t = {} for i = 1, 7000 do t[i] = 'x' end while true do table.unpack(t) end",
    "error({})",
    "error()",
    "return {status = 'Heathy'}",
    "return {status = obj}",
]


@pytest.mark.parametrize("source", HOSTILE)
def test_hostile_script_ends_soon_and_reaches_nothing(tmp_path: Path, source: str) -> None:
    use(tmp_path, source)
    started = time.thread_time()
    health = judged({"phase": "Ready"})
    assert time.thread_time() - started < 0.5
    assert (health.state, health.reason, health.trouble) == (State.WAITING, "ScriptFailed", True)
    use(tmp_path, 'return {status = "Healthy"}')
    assert judged({"x": 1}).state is State.READY


@pytest.mark.parametrize("number", [10**30, -(2**63) - 1, 10**400])
def test_number_that_lua_does_not_have_is_near_it(tmp_path: Path, number: int) -> None:
    use(tmp_path, 'return {status = obj.status.n > 5 and "Healthy" or "Progressing"}')
    assert judged({"n": number}).state is (State.READY if number > 0 else State.WAITING)


@pytest.mark.parametrize("source", ["return {status = 'Degraded', message = obj.data.a}", "error(obj.data.a)"])
def test_script_shows_nothing_of_a_secret(tmp_path: Path, source: str) -> None:
    use(tmp_path, source, "Secret")
    live: Json = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "hunter2"}}
    found = explained.verdict(resource_for(live), live)
    assert found.health.state is State.WAITING and "hunter2" not in f"{found}"


def test_script_with_an_unknown_status_names_the_known_ones(tmp_path: Path) -> None:
    use(tmp_path, "return {status = 'Heathy'}")
    assert judged({"phase": "Ready"}).message.startswith(
        "example.com/Widget/health.lua: its status 'Heathy' is none of Healthy, Suspended, Progressing"
    )


def test_script_that_is_no_lua_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"Widget/health.lua: is no script in Lua: example.com/Widget/health.lua:2:"):
        use(tmp_path, "x = 1\nx = = 2")


def test_script_without_the_extra_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lua_rules, "IS_AVAILABLE", False)
    with pytest.raises(InvalidRequest, match=r"install k8s-cr-driver\[lua\]"):
        use(tmp_path, "return nil")


ROLLOUT = """
local function replicasOf(obj)
  if obj.spec ~= nil and obj.spec.replicas ~= nil then return obj.spec.replicas end
  return 1
end
local hs = {}
if obj.metadata.annotations ~= nil and obj.metadata.annotations["example.com/paused"] == "true" then
  hs.status = "Suspended"
  hs.message = "paused by an annotation"
  return hs
end
if obj.status == nil or obj.metadata.generation ~= obj.status.observedGeneration then
  return {status = "Progressing", message = "Waiting for the controller"}
end
local ready, total = 0, 0
for name, shard in pairs(obj.status.shards or {}) do
  total = total + 1
  if string.match(shard.state, "^up") then ready = ready + 1 end
  if shard.state:lower() == "lost" then
    hs.status = "Degraded"
    hs.message = string.format("%s is lost", name)
    return hs
  end
end
if total < replicasOf(obj) or ready < total then
  hs.status = "Progressing"
  hs.message = ready .. " of " .. tostring(total) .. " are up"
else
  hs.status = "Healthy"
end
return hs
"""


def test_folder_as_argo_cd_has_it(tmp_path: Path) -> None:
    """GROUP/KIND/health.lua beside its tests and actions, wildcards, and the kinds of the core group by their name alone."""
    files = {
        "example.com/Widget/health.lua": ROLLOUT,
        "example.com/Widget/health_test.yaml": "tests:\n- healthStatus: {status: Healthy}\n  inputPath: testdata/a.yaml\n",
        "example.com/Widget/testdata/a.yaml": "kind: Widget\n",
        "example.com/Widget/actions/discovery.lua": "return {}",
        "_.example.org/_/health.lua": 'return {status = "Healthy", message = obj.kind}',
        "ConfigMap/health.lua": 'return {status = obj.data.a == "1" and "Healthy" or "Progressing"}',
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    operator_rules.use(tmp_path)

    def shards(**states: str) -> Json:
        return {"observedGeneration": 1, "shards": {name: {"state": state} for name, state in states.items()}}

    def said(status: Json | None, **metadata: object) -> tuple[State, bool, str]:
        health = resource_for(custom()).health(custom(status, {"replicas": 2}, **metadata))
        return health.state, health.trouble, health.message

    assert said(None) == (State.WAITING, False, "Waiting for the controller")
    assert said(shards(a="up")) == (State.WAITING, False, "1 of 1 are up")
    assert said(shards(a="up", b="starting")) == (State.WAITING, False, "1 of 2 are up")
    assert said(shards(a="up", b="up-to-date")) == (State.READY, False, "")
    assert said(shards(a="up", b="LOST")) == (State.WAITING, True, "b is lost")
    assert said(shards(), annotations={"example.com/paused": "true"})[::2] == (State.SUSPENDED, "paused by an annotation")
    other: Json = {"apiVersion": "a.example.org/v1", "kind": "Gadget", "metadata": {"name": "g"}, "status": {"x": 1}}
    assert resource_for(other).health(other).message == "Gadget"
    config: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}
    assert resource_for(config).health(config).source == "operator's script ConfigMap/health.lua"
    assert resource_for(config).health({**config, "data": {"a": "2"}}).state is State.WAITING
