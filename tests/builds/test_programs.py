# SPDX-License-Identifier: Apache-2.0
"""Families of Go programs are built once for what their files say, all of a family or nothing; with the real Go."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from builds import cache, programs
from builds.programs import build, key

GO_MOD = "module bed.test/tools\n\ngo 1.26.0\n\ntool bed.test/tools/hello\n"
HELLO = 'package main\n\nfunc main() { println("hello") }\n'


@pytest.fixture
def family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the family `tools`, whose only program is `hello`."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GOCACHE", str(Path.home() / ".cache" / "go-build"))
    monkeypatch.setattr(programs, "MODULES", tmp_path / "go")
    folder = tmp_path / "go" / "tools"
    (folder / "hello").mkdir(parents=True)
    (folder / "go.mod").write_text(GO_MOD)
    (folder / "hello" / "main.go").write_text(HELLO)
    return folder


def built_folders(binaries: Path) -> list[str]:
    return [path.name for path in binaries.parent.iterdir() if path.is_dir()]


def test_what_the_tool_directives_name_is_built_and_not_built_again(family: Path):
    binaries = build("tools")
    (binaries / "hello").write_text("untouched by a second build")
    assert build("tools") == binaries
    assert (binaries / "hello").read_text() == "untouched by a second build"
    assert built_folders(binaries) == [binaries.name]


def test_the_recipe_gives_a_program_another_name_and_the_others_keep_theirs(family: Path):
    shutil.copytree(family / "hello", family / "bye")
    (family / "go.mod").write_text(GO_MOD + "tool bed.test/tools/bye\n")
    (family / "build.yaml").write_text("names:\n  bed.test/tools/hello: greeter\n")
    assert {path.name for path in build("tools").iterdir()} == {"bye", "greeter"}


def test_two_builds_at_once_make_one_folder(family: Path):
    with ThreadPoolExecutor() as pool:
        first, second = pool.map(build, ["tools", "tools"])
    assert first == second
    assert built_folders(first) == [first.name]


def test_a_failed_build_says_what_the_compiler_says_and_leaves_nothing(family: Path):
    (family / "hello" / "main.go").write_text("package main\n\nfunc main() { undefined() }\n")
    with pytest.raises(RuntimeError, match="undefined: undefined"):
        build("tools")
    assert built_folders(cache.folder() / "go" / "any") == []


def test_what_a_killed_build_has_left_is_removed(family: Path):
    left = cache.folder() / "go" / ".tools-half"
    left.mkdir(parents=True)
    build("tools")
    assert not left.exists()


def test_the_key_follows_every_file_and_its_name(family: Path):
    keys = [key("tools")]
    (family / "go.sum").write_text("")
    keys.append(key("tools"))
    (family / "go.sum").rename(family / "go.som")
    keys.append(key("tools"))
    (family / "hello" / "main.go").write_text(HELLO + "\n")
    keys.append(key("tools"))
    assert len(set(keys)) == 4
    (family / "go.som").unlink()
    (family / "hello" / "main.go").write_text(HELLO)
    assert key("tools") == keys[0]


def test_files_of_a_module_that_the_recipe_names_are_built_as_if_they_held_nothing(family: Path, tmp_path: Path):
    library = tmp_path / "library" / "greeting"
    library.mkdir(parents=True)
    (library.parent / "go.mod").write_text("module bed.test/library\n\ngo 1.26.0\n")
    (library / "text.go").write_text('package greeting\n\nconst Text = "hello"\n')
    (library / "broken.go").write_text("package greeting\n\nfunc broken() { undefined() }\n")
    required = f"require bed.test/library v0.0.0\n\nreplace bed.test/library => {library.parent}\n"
    (family / "go.mod").write_text(GO_MOD + required)
    (family / "go.sum").touch()
    (family / "hello" / "main.go").write_text(
        'package main\n\nimport "bed.test/library/greeting"\n\nfunc main() { println(greeting.Text) }\n'
    )
    with pytest.raises(RuntimeError, match="undefined: undefined"):
        build("tools")
    (family / "build.yaml").write_text("empty:\n  bed.test/library: [greeting/broken.go]\n")
    assert (build("tools") / "hello").exists()
