# SPDX-License-Identifier: Apache-2.0
"""
The engine's own code on a simulated cluster, in one process, in virtual time, from one seed.

    python -m tests.simulation --minutes 60          # new lives, from a random seed or that of --seed
    python -m tests.simulation --lives 1 --seed 42 --trace --feature "two workers" --feature latency

A life is that of one VNF instance (`life`), with the trouble that its features allow (`features`): the network's and the
servers' (`weather`, `servers`, `admission`), users' (`users`), and controllers that take their time (`controllers`). Its
operations are those of the driver (`verbs`). Most lives are brief, so that there are many. What must hold is checked after
each operation against a ledger of who made what (`ledger`, `invariants`). The engine runs as it is: its
threads are greenlets, its clock is the scheduler's (`stand_ins`, `scheduler`), and its requests go to the fake API
server's verbs without a socket.
"""
