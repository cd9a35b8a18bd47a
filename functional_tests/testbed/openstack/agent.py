# SPDX-License-Identifier: Apache-2.0
"""`python -m functional_tests.testbed.openstack.agent FOLDER FILE`: makes real on this host what Neutron and Octavia describe.

It reads everything from the APIs when it is woken, and every few seconds. It creates what is missing, and removes the rest:
so it need not know what it missed. FILE has the administrator's environment.
"""

import json
import sys
import time
import traceback
from collections.abc import Mapping
from pathlib import Path

from keystoneauth1 import session
from keystoneauth1.identity import v3

from ..ledger import Ledger
from . import notice
from .balancing import Balancers
from .routers import Routers
from .switch import Switch
from .view import View

# Seconds between two looks when nobody wakes it.
PAUSE = 5.0
# Seconds in which what belongs together is changed, before the agent looks.
QUIET = 0.1


def main(folder: Path, file: Path) -> None:
    receiver = notice.Receiver(folder / notice.SOCKET)
    ledger = Ledger(folder / "network")
    parts = (Switch(ledger), Routers(ledger), Balancers(ledger))
    access = _session(json.loads(file.read_text()))
    while True:
        try:
            view = View.read(access)
            for part in parts:
                part.follow(view)
        except Exception:  # an API that is away, an object that went while it was looked at: the next look decides
            traceback.print_exc()
        receiver.wait(PAUSE)
        time.sleep(QUIET)


def _session(variables: Mapping[str, str]) -> session.Session:
    return session.Session(
        v3.Password(
            variables["OS_AUTH_URL"], username=variables["OS_USERNAME"], password=variables["OS_PASSWORD"],
            project_name=variables["OS_PROJECT_NAME"], user_domain_id="default", project_domain_id="default",
        ),
        timeout=30,
    )  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
