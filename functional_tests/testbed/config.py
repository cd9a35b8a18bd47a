# SPDX-License-Identifier: Apache-2.0
"""Config files of the bed's services: a template of `templates/` and the values that differ from bed to bed.

Each bed picks new ports, so that services of the host that have the usual ones are not in the way.
"""

import socket
from contextlib import ExitStack
from pathlib import Path
from string import Template

TEMPLATES = Path(__file__).parent / "templates"


def render(template: str, **values: object) -> str:
    """The text of the template with every value filled in. KeyError for one that is missing."""
    return Template((TEMPLATES / template).read_text()).substitute(values)


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens on."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
