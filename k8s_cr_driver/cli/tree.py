# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr tree`: the objects of an instance with their state, or those of a package in the order of their creation."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from pathlib import Path
from urllib.parse import urlsplit

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text
from rich.tree import Tree

from k8s_cr_driver.cli import package_input
from k8s_cr_driver.cli.cluster import Cluster, Kubeconfig, named, on_cluster
from k8s_cr_driver.cli.descendants import Node, descent
from k8s_cr_driver.cli.output import COLOURS, age, confirmed, dot, echo, is_terminal, line, output_option, print_json
from k8s_cr_driver.objects import dependencies
from k8s_cr_driver.objects.keys import ObjectKey, key_of, kind_of

LOOK_EVERY = 2.0
"""Seconds between two looks of --watch."""


@click.command(
    epilog="""
    \b
    Examples:
      k8s-cr tree 8f0e2ef0-5d8a-4a43-a1f0-000000000001 --watch
      k8s-cr tree 8f0e2ef0-5d8a-4a43-a1f0-000000000001 -o dot | dot -Tsvg > instance.svg
      k8s-cr tree crontab.csar
    """
)
@click.argument("subject", metavar="INSTANCE|PACKAGE", callback=named)
@on_cluster
@click.option("--inventory-namespace", default="", metavar="NAMESPACE", help="Where the inventory is; else it is looked for.")
@package_input.with_namespace
@click.option("--watch", is_flag=True, help="Look again every two seconds, until Ctrl-C.")
@click.option(
    "--connect-clouds/--no-connect-clouds",
    "clouds",
    default=None,
    help="Connect to the OpenStack clouds that Secrets of the cluster name, which say why a server has failed; else it asks.",
)
@output_option("dot")
def tree(
    kubeconfig: Kubeconfig,
    subject: str,
    inventory_namespace: str,
    namespace: str | None,
    watch: bool,
    clouds: bool | None,
    output: str,
) -> None:
    """Show the objects of an instance or a package.

    INSTANCE: with all descendants, and their states, reasons and ages. PACKAGE, a folder or a CSAR: in the order in which
    they are created, and what each waits for.
    """
    if Path(subject).exists():
        _show_package(Path(subject), namespace, output)
        return
    if "/" in subject or subject.endswith((".csar", ".zip")):
        raise click.UsageError(f"{subject} does not exist; {package_input.WANTED}")
    if watch and (output != "text" or not is_terminal()):
        raise click.UsageError("--watch is for text on a terminal")
    consent = _Consent(clouds)
    with Cluster(kubeconfig, consent=consent) as cluster:
        instance = cluster.instance(subject, inventory_namespace)
        roots = descent(cluster, instance)
        if watch:
            consent.asks = False  # where the live tree is
            _watch(cluster, subject, inventory_namespace, roots)
        elif output == "json":
            print_json([node.as_json() for node in roots])
        elif output == "dot":
            click.echo(_as_dot(roots))
        elif is_terminal():
            Console().print(_as_tree(subject, roots))
        else:
            for text in _lines(roots, 0):
                click.echo(text)


@dataclass(eq=False)
class _Consent:
    """Whether this host may connect to what a user of the cluster has named, by the user of the tool, who is asked once."""

    given: bool | None
    """None to ask."""
    asks: bool = True
    _answers: dict[str, bool] = field(default_factory=dict)

    def __call__(self, url: str) -> bool:
        if self.given is not None:
            return self.given
        server = urlsplit(url).netloc
        if server not in self._answers and self.asks:
            question = f"A Secret of the cluster has credentials for {line(url)}. Connect to it from this host, and send them?"
            self._answers[server] = confirmed(question, "--connect-clouds does without")
        return self._answers.get(server, False)


def _watch(cluster: Cluster, id: str, namespace: str, roots: Sequence[Node]) -> None:
    """Until the instance is deleted, or Ctrl-C."""
    with Live(_as_tree(id, roots), auto_refresh=False, vertical_overflow="crop") as live:
        while True:
            time.sleep(LOOK_EVERY)
            cluster.discover()  # an operation may have brought kinds
            found = cluster.instances(namespace, id)
            if not found:
                break
            live.update(_as_tree(id, descent(cluster, found[0])), refresh=True)
    click.echo(f"VNF instance {id} is deleted", err=True)


def _lines(nodes: Sequence[Node], depth: int) -> Iterator[str]:
    for node in nodes:
        yield "  " * depth + f"{line(str(node.key))}  {_words(node)}"
        yield from _lines(node.children, depth + 1)


def _words(node: Node) -> str:
    """State, why if it is not ready, and age."""
    why = "" if node.health.settled else f" ({node.health.reason}) {node.health.message}".rstrip()
    return line(f"{node.health.state.value}{why}  {age(node.created)}" + ("  adopted" if node.adopted else ""))


def _as_tree(title: str, nodes: Sequence[Node]) -> Tree:
    branch = Tree(Text(title, "bold"))
    _grow(branch, nodes)
    return branch


def _grow(branch: Tree, nodes: Sequence[Node]) -> None:
    for node in nodes:
        text = Text.assemble(line(str(node.key)), "  ", (_words(node), COLOURS[node.health.state]))
        _grow(branch.add(text), node.children)


def _as_dot(nodes: Sequence[Node]) -> str:
    every = list(_walked(nodes))
    return dot(
        [(str(node.key), f"{node.key}\n{_words(node)}", COLOURS[node.health.state]) for node in every],
        [(str(node.key), str(child.key)) for node in every for child in node.children],
    )


def _walked(nodes: Sequence[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        yield from _walked(node.children)


def _show_package(path: Path, namespace: str | None, output: str) -> None:
    with package_input.opened(path) as folder:
        objects = package_input.load(folder, {}, lenient=True)
        namespace = namespace or package_input.requested(folder)
    bare = [obj for obj in objects if not obj["metadata"].get("namespace")]
    unknown = package_input.place(objects, namespace)
    guessed = {key_of(obj) for obj in bare if kind_of(obj) in unknown}
    dependencies.check(objects)
    ready = dependencies.graph(objects)
    graph = {key: ready[key] | written for key, written in dependencies.written_first(objects, ready).items()}
    ranked = sorted(graph, key=lambda key: (dependencies.rank(key.group_kind), key))
    keys: list[ObjectKey] = list(TopologicalSorter({key: graph[key] for key in ranked}).static_order())

    def name(key: ObjectKey) -> str:
        """As it is written, if only a cluster knows whether the kind is namespaced."""
        return f"{key.group_kind} {key.name}" if key in guessed else str(key)

    if output == "json":
        print_json([{"object": name(key), "needs": sorted(map(name, graph[key]))} for key in keys])
    elif output == "dot":
        edges = [(name(key), name(need)) for key in keys for need in sorted(graph[key])]
        click.echo(dot([(name(key), name(key), "black") for key in keys], edges))
    else:
        for key in keys:
            needs = ", ".join(map(name, sorted(graph[key])))
            echo(name(key) + (f"  needs {needs}" if needs else ""))
