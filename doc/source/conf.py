"""Sphinx: `sphinx-build -W -b html doc/source doc/build/html`, which is what `make docs` does."""

import importlib.metadata

project = "k8s-cr-driver"
copyright = "the authors of k8s-cr-driver, Apache-2.0"
release = importlib.metadata.version("k8s-cr-driver")

extensions = ["oslo_config.sphinxconfiggen", "oslo_config.sphinxext", "reno.sphinxext"]
nitpicky = True
exclude_patterns = ["tutorial/package"]

config_generator_config_file = "../../etc/config-generator.conf"
sample_config_basename = "_static/k8s_cr_driver"

html_theme = "alabaster"
html_theme_options = {"description": "Any Kubernetes kind as a VNF resource of OpenStack Tacker", "page_width": "1100px"}
html_static_path = ["_static"]
