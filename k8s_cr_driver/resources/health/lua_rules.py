# SPDX-License-Identifier: Apache-2.0
"""Health scripts in Lua, as Argo CD has them: GROUP/KIND/health.lua gets the object as `obj` and returns status and message.

A script is an operator's, but what it reads is anybody's. So it has tables, texts and numbers, and nothing that reads files,
starts programs or loads code. Its memory and its time are limited, and so is the work of functions such as patterns, in which
nothing looks at the time. Needs `lupa` (the extra `lua`).
"""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from k8s_cr_driver.resources.health.model import Health, ready, suspended, waiting

try:
    lua54: Any = importlib.import_module("lupa.lua54")
except ImportError:  # an optional extra
    lua54 = None

IS_AVAILABLE = lua54 is not None
MOST_MEMORY = 16 * 1024 * 1024
"""Bytes of all scripts of a thread."""
_DEEPEST = 60
_SANDBOX = """
local clock, MOST_SECONDS, MOST_WORK, LONGEST, STEP_OF_SORT = ..., 0.05, 2e7, 65536, 100
local sethook, load, error, type, tostring = debug.sethook, load, error, type, tostring
local find, match, gmatch, gsub, rep, byte = string.find, string.match, string.gmatch, string.gsub, string.rep, string.byte
local work = 0

-- A function of C runs to its end, whatever the time is
local function spend(cost)
  work = work + cost
  if work > MOST_WORK then error("its functions take too much work", 0) end
end

local function pay(text, pattern, plain)
  text, pattern = tostring(text), tostring(pattern)
  local open, cost = 0, (#text + 1) * (1 + #pattern // 8)
  for place = 1, plain and 0 or #pattern do
    local one, two = byte(pattern, place, place + 1)
    local repeats = one == 42 or one == 43 or one == 45 or one == 63 -- * + - ?
    if repeats or (one == 37 and two and (two == 98 or two >= 48 and two <= 57)) then -- %b, %1
      open = open + 1
      cost = cost * (#text + 1) / (open + 1)
    end
  end
  spend(cost)
end

local function paid(ask, weight)
  return function(of, ...)
    spend(#of * weight)
    return ask(of, ...)
  end
end

local safe = {
  byte = string.byte, char = string.char, format = string.format, len = string.len, lower = paid(string.lower, 1),
  reverse = paid(string.reverse, 1), sub = string.sub, upper = paid(string.upper, 1),
  find = function(text, pattern, start, plain)
    pay(text, pattern, plain)
    return find(text, pattern, start, plain)
  end,
  match = function(text, pattern, start) pay(text, pattern) return match(text, pattern, start) end,
  gmatch = function(text, pattern) pay(text, pattern) return gmatch(text, pattern) end,
  gsub = function(text, pattern, by, most) pay(text, pattern) return gsub(text, pattern, by, most) end,
  rep = function(text, count, between)
    if (#text + #(between or "") + 1) * count > LONGEST then error("it makes a text that is too long", 0) end
    return rep(text, count, between)
  end,
}
getmetatable("").__index = safe

local function copy(of, ...)
  local found = {}
  for _, name in ipairs({...}) do found[name] = of[name] end
  return found
end

local function environment()
  local env = copy(_G, "pairs", "ipairs", "next", "tostring", "tonumber", "type", "select", "error", "assert")
  env.string = {}
  for name, one in pairs(safe) do env.string[name] = one end
  env.table = {concat = paid(table.concat, 8), sort = paid(table.sort, STEP_OF_SORT), unpack = paid(table.unpack, 1)}
  env.table.insert, env.table.remove = paid(table.insert, 8), paid(table.remove, 8)
  env.math = copy(math, "floor", "ceil", "max", "min", "abs", "huge")
  return env
end

local function check(source, name)
  local compiled, problem = load(source, "=" .. name, "t", environment())
  return compiled and "" or problem
end

local function judge(source, name, obj)
  local env = environment()
  env.obj, work = obj, 0
  local run = load(source, "=" .. name, "t", env)
  local until_ = clock() + MOST_SECONDS
  sethook(function() if clock() > until_ then error("it takes too long", 0) end end, "", 100)
  local found = run()
  sethook()
  if type(found) ~= "table" then return "", "" end
  return tostring(found.status or ""), tostring(found.message or "")
end

return check, judge
"""
_STATES: Mapping[str, Callable[[str, str], Health]] = {
    "Healthy": ready,
    "Suspended": suspended,
    "Progressing": waiting,
    "Degraded": lambda reason, message: waiting(reason, message, trouble=True),
    "Unknown": waiting,
    "Missing": waiting,
}
_local = threading.local()


class LuaError(Exception):
    """Why a script cannot be run."""


def check(source: str, name: str) -> None:
    """LuaError, with the line, if the script is no Lua."""
    problem = _runtime()[0](source, name)
    if problem:
        raise LuaError(str(problem))


def script(source: str, name: str) -> Callable[[Mapping[str, Any]], Health | None]:
    """What judges an object by a script; None if that says nothing. A script that fails is waiting, in trouble."""

    def judge(live: Mapping[str, Any]) -> Health | None:
        try:
            status, message = _runtime()[1](source, name, _converted(live, 0))
        except (lua54.LuaError, MemoryError, RecursionError, UnicodeError) as error:
            _local.__dict__.clear()  # what is left of its memory goes with it
            return _failed(name, _problem(error))
        if status and status not in _STATES:
            return _failed(name, f"its status {str(status)[:40]!r} is none of {', '.join(_STATES)}")
        return _STATES[str(status)](str(status), str(message)) if status else None

    return judge


def _failed(name: str, problem: str) -> Health:
    return waiting("ScriptFailed", f"{name}: {problem}", trouble=True)


def _problem(error: Exception) -> str:
    said = str(error).partition("\n")[0][:200]
    if isinstance(error, MemoryError):
        return "it takes too much memory"
    return said if said and said != "stack traceback:" else "it ends with an error that is no text"


def _runtime() -> Any:
    """(check, judge) of this thread's Lua."""
    if not hasattr(_local, "functions"):
        runtime = lua54.LuaRuntime(
            unpack_returned_tuples=True,
            register_eval=False,
            register_builtins=False,
            attribute_filter=_no_attribute,
            max_memory=MOST_MEMORY,
        )
        _local.runtime, _local.functions = runtime, runtime.execute(_SANDBOX, time.thread_time)
    return _local.functions


def _no_attribute(obj: Any, name: Any, is_setting: bool) -> Any:
    raise AttributeError("a script sees no objects of Python")


def _converted(value: Any, depth: int) -> Any:
    """A table for a mapping or a list; null is nil."""
    if depth > _DEEPEST:
        raise RecursionError("the object is nested too deeply")
    if isinstance(value, Mapping):
        found = {str(name): _converted(one, depth + 1) for name, one in value.items() if one is not None}
        return _local.runtime.table_from(found)
    if isinstance(value, list):
        return _local.runtime.table_from([_converted(one, depth + 1) for one in value if one is not None])
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float(str(value))  # as all numbers are in Argo CD; of too many digits infinite, and no error
    return value if isinstance(value, (str, int, float)) else None
