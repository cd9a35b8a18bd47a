# SPDX-License-Identifier: Apache-2.0
"""Sphinx: `sphinx-build -W -b html doc/source doc/build/html`, which is what `make docs` does.

Options, help texts, hooks and modules are taken from the code when the documents are built, so that they cannot differ.
"""

import ast
import importlib.metadata
import sys
from itertools import groupby
from pathlib import Path

from click.testing import CliRunner
from docutils import nodes
from docutils.parsers.rst import Directive

import k8s_cr_driver
from k8s_cr_driver.cli import commands
from k8s_cr_driver.cli.explain import CODES

sys.path.insert(0, str(Path(__file__).parent))
import pictures

project = "k8s-cr-driver"
copyright = "the authors of k8s-cr-driver, Apache-2.0"
release = importlib.metadata.version("k8s-cr-driver")

extensions = ["oslo_config.sphinxconfiggen", "oslo_config.sphinxext", "reno.sphinxext", "sphinx.ext.autodoc"]
autodoc_member_order = "bysource"
autodoc_typehints = "none"
nitpicky = True
exclude_patterns = ["tutorial/package"]

config_generator_config_file = "../../etc/config-generator.conf"
sample_config_basename = "_static/k8s_cr_driver"

html_theme = "furo"
html_title = f"k8s-cr-driver {release}"
html_css_files = ["site.css"]
html_theme_options = {"top_of_page_buttons": []}
html_static_path = ["_static"]


class CommandHelp(Directive):
    """What `--help` says of k8s-cr and each of its commands."""

    def run(self):
        found = []
        for command in ([], *([name] for name in commands.main.list_commands(None))):
            answer = CliRunner().invoke(commands.main, [*command, "--help"], prog_name="k8s-cr", terminal_width=100)
            text = answer.output
            found += [
                nodes.rubric(text=" ".join(["k8s-cr", *command])),
                nodes.literal_block(text, text, language="none"),
            ]
        return found


class Picture(Directive):
    """A picture of boxes and arrows; see `pictures`. The argument is what a reader gets who cannot see it."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self):
        try:
            drawn = pictures.svg("\n".join(self.content), self.arguments[0])
        except ValueError as error:
            raise self.error(f"picture: {error}") from None
        return [nodes.raw("", drawn, format="html")]


class FindingCodes(Directive):
    """The codes of `k8s-cr validate`, as `k8s-cr explain` has them."""

    def run(self):
        items = []
        for code, about in CODES.items():
            text = nodes.paragraph("", f"{about.title}. {about.why} {about.remedy}")
            items.append(
                nodes.definition_list_item("", nodes.term("", "", nodes.literal(text=code)), nodes.definition("", text))
            )
        return [nodes.definition_list("", *items)]


class Modules(Directive):
    """The modules of each folder of the driver, with the first sentence of their docstrings."""

    def run(self):
        code = Path(k8s_cr_driver.__file__).parent
        files = sorted((path.parent.relative_to(code).as_posix(), path) for path in code.rglob("*/*.py"))
        folders = groupby(files, key=lambda file: file[0])
        return [nodes.definition_list("", *(self._folder(name, group) for name, group in folders))]

    def _folder(self, folder, files):
        modules = nodes.bullet_list("", *(self._module(path) for _, path in files if path.stem != "__init__"))
        return nodes.definition_list_item("", nodes.term("", "", nodes.literal(text=folder)), nodes.definition("", modules))

    def _module(self, path):
        first, _, _ = " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").split()).partition(". ")
        text = nodes.paragraph("", "", nodes.literal(text=path.stem), nodes.Text(f": {first.rstrip('.')}."))
        return nodes.list_item("", text)


def setup(app):
    app.add_directive("command-help", CommandHelp)
    app.add_directive("finding-codes", FindingCodes)
    app.add_directive("modules", Modules)
    app.add_directive("picture", Picture)
