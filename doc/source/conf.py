"""Sphinx: `sphinx-build -W -b html doc/source doc/build/html`, which is what `make docs` does.

Options, help texts and hooks are taken from the code when the documents are built, so that they cannot differ from it.
"""

import importlib.metadata

from click.testing import CliRunner
from docutils import nodes
from docutils.parsers.rst import Directive

from k8s_cr_driver import cli

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

html_theme = "alabaster"
html_theme_options = {"description": "Any Kubernetes kind as a VNF resource of OpenStack Tacker", "page_width": "1100px"}
html_static_path = ["_static"]


class CommandHelp(Directive):
    """What `--help` says of k8s-cr and each of its commands."""

    def run(self):
        found = []
        for command in ([], *([name] for name in sorted(cli.main.commands))):
            answer = CliRunner().invoke(cli.main, [*command, "--help"], prog_name="k8s-cr", terminal_width=100)
            text = answer.output
            found += [
                nodes.rubric(text=" ".join(["k8s-cr", *command])),
                nodes.literal_block(text, text, language="none"),
            ]
        return found


def setup(app):
    app.add_directive("command-help", CommandHelp)
