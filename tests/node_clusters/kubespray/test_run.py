# SPDX-License-Identifier: Apache-2.0
"""Clusters that kubespray makes, over SSH: what is there afterwards, what has run, and what a failure says."""

from __future__ import annotations

import contextlib
import functools
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from k8s_cr_driver.errors import DriverError, InvalidRequest
from k8s_cr_driver.node_clusters import load_balancer
from k8s_cr_driver.node_clusters.kubespray import ansible_server
from k8s_cr_driver.ssh.host import CommandFailed
from k8s_cr_driver.ssh.hosts import Hosts
from tests.credentials.web import wait_until

from . import bed as beds
from .bed import BALANCER, MASTER, WORKERS, Bed
from .specification import ansible, balancer, parameter


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[Bed]:
    with beds.serving(tmp_path) as one:
        yield one


def test_new_servers_become_a_cluster_behind_the_load_balancer(bed: Bed) -> None:
    bed.ensure()
    [played] = bed.playbooks
    assert played["playbook"] == "cluster.yml"
    assert played["hosts"] == ["master-m0", "worker-w0", "worker-w1"]
    assert [one for one in played["arguments"] if one.startswith("--become")] == ["--become", "--become-user=root"]
    configuration = bed.machines[BALANCER.name].file("/etc/haproxy/haproxy.cfg").read_text()
    assert "bind *:8383" in configuration and "server master-m0 10.0.0.10:6443" in configuration
    assert "server worker-w1 10.0.0.21:30080" in configuration
    assert bed.machines[BALANCER.name].log == ["systemctl enable --quiet haproxy", "systemctl restart haproxy"]


def test_the_folder_on_the_ansible_server_is_the_users_own_and_keeps_no_password(bed: Bed) -> None:
    bed.ensure()
    folder = bed.folder()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.name: oct(path.stat().st_mode & 0o777) for path in folder.iterdir() if path.is_file()} == dict.fromkeys(
        ("hosts.yaml", "known_hosts", "ansible.cfg"), "0o600"
    )
    assert '!unsafe "ubuntu"' in bed.playbooks[0]["secrets"][0], "the playbook has had it"
    contents = [path.read_text() for path in folder.rglob("*") if path.is_file()]
    assert contents and not any('"ubuntu"' in text for text in contents)


def test_a_second_run_runs_no_playbook_and_changes_nothing(bed: Bed) -> None:
    bed.ensure()
    before = {name: machine.log for name, machine in bed.machines.items()}
    second = bed.ensure()
    assert second.changes == 0
    assert bed.names == ["cluster.yml"]
    assert {name: machine.log for name, machine in bed.machines.items()} == before
    assert second.hosts.connections == 5, "one for each server, and one for the Ansible server"


def test_a_new_worker_gets_its_playbook_and_its_route(bed: Bed) -> None:
    bed.ensure()
    bed.ensure(WORKERS)
    assert bed.names == ["cluster.yml", "playbooks/facts.yml", "scale.yml"]
    assert "--limit=worker-w2" in bed.playbooks[2]["arguments"]
    balancing = bed.machines[BALANCER.name]
    assert "server worker-w2 10.0.0.22:30080" in balancing.file("/etc/haproxy/haproxy.cfg").read_text()
    assert balancing.log[-1] == "systemctl reload haproxy", "a restart would end the connections"


def test_a_worker_leaves_drained_and_its_route_and_facts_go(bed: Bed) -> None:
    bed.ensure()
    facts = bed.folder() / "facts"
    facts.mkdir()
    for name in ("master-m0", "worker-w1"):
        (facts / name).touch()
    with bed.run() as one:
        one.leave(["w1"])
    assert bed.names == ["cluster.yml", "remove-node.yml"]
    assert bed.machines[MASTER.name].log[-1].startswith("kubectl drain worker-w1 --ignore-daemonsets")
    assert "worker-w1" not in bed.machines[BALANCER.name].file("/etc/haproxy/haproxy.cfg").read_text()
    assert [path.name for path in facts.iterdir()] == ["master-m0"]
    with bed.run() as again:
        again.leave(["w1"])
    assert (again.changes, bed.names) == (0, ["cluster.yml", "remove-node.yml"])


def test_a_drain_that_a_budget_forbids_stops_before_anything_else(bed: Bed) -> None:
    bed.ensure()
    (bed.cluster / "budget").touch()
    with bed.run() as one, pytest.raises(DriverError, match=r"disruption budget.*kubectl uncordon worker-w1"):
        one.leave(["w1"])
    assert bed.names == ["cluster.yml"]
    assert "worker-w1" in bed.machines[BALANCER.name].file("/etc/haproxy/haproxy.cfg").read_text()


def test_a_playbook_that_fails_is_reported_by_host_task_and_first_lines(bed: Bed) -> None:
    (bed.cluster / "fails").write_text("error execution phase preflight\npassword: ubuntu-secret-word\nthird\nfourth")
    with pytest.raises(DriverError) as failure:
        bed.ensure()
    said = str(failure.value)
    assert said.startswith("cluster.yml of kubespray has failed: worker-w1: kubeadm : Join to cluster: non-zero return code / ")
    assert "preflight" in said and "ubuntu-secret-word" not in said and "fourth" not in said
    assert "/opt/kubespray/inventory/k8s-cr-4a1f/run/log" in said
    assert not (bed.folder() / "secrets.yml").exists()


def test_no_secret_of_the_request_is_in_the_report_of_a_failure(bed: Bed) -> None:
    """Ansible prints JSON, in which a password may be escaped."""
    passwords = ('wört"\\1', "word-2", "word-3")
    (bed.cluster / "fails").write_text(f"cannot log in with {passwords[0]} or {passwords[1]} or {passwords[2]}")
    settings = {"registries": [{"docker_password": passwords[1]}], "files_repo": f"https://me:{passwords[2]}@mirror.example/f"}
    with pytest.raises(DriverError) as failure:
        bed.ensure(master_node={**parameter()["master_node"], "password": passwords[0]}, ansible=ansible(settings=settings))
    assert "cannot log in with [removed] or [removed] or [removed]" in str(failure.value)


def test_passwords_do_not_stay_where_a_playbook_is_ended(bed: Bed, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    with bed.run(ansible=ansible(ansible_playbook=str(program))) as one:

        def play() -> None:
            with contextlib.suppress(DriverError):
                one.ensure()

        thread = threading.Thread(target=play)
        thread.start()
        wait_until((bed.folder() / "secrets.yml").exists)
        one.ansible(ansible_server.stop(one.kubespray.ansible, "4a1f"))
        thread.join(60)
    assert not (bed.folder() / "secrets.yml").exists()


def test_a_retry_takes_up_the_folder_of_a_run_that_has_failed(bed: Bed) -> None:
    (bed.cluster / "fails").write_text("no space left on device")
    with pytest.raises(DriverError, match="no space left on device"):
        bed.ensure()
    (bed.cluster / "fails").unlink()
    bed.ensure()
    assert bed.names == ["cluster.yml", "cluster.yml"]


def test_what_the_ansible_server_lacks_is_reported_at_once_and_nothing_is_touched(bed: Bed) -> None:
    server = bed.machines["ansible"]
    server.file("/opt/kubespray/scale.yml").unlink()
    with pytest.raises(InvalidRequest) as failure:
        bed.ensure(ansible=ansible(ansible_playbook="/opt/kubespray/none", node_key_path="/opt/kubespray/key"))
    assert [line.partition(" has no ")[2].partition(",")[0] for line in str(failure.value).splitlines()] == [
        "/opt/kubespray/scale.yml",
        "/opt/kubespray/none",
        "/opt/kubespray/key",
    ]
    assert bed.machines[BALANCER.name].log == [] and not bed.folder().exists()


def test_a_folder_that_is_a_link_is_refused(bed: Bed) -> None:
    bed.folder().parent.mkdir()
    bed.folder().symlink_to(bed.cluster)
    with pytest.raises(InvalidRequest, match="is not a folder of ansible itself: remove it"):
        bed.ensure()


def test_two_clusters_at_once_on_one_ansible_server_have_folders_of_their_own(bed: Bed) -> None:
    bed.ensure(instance="5b2e")
    threads = [threading.Thread(target=bed.ensure, kwargs={"instance": name}) for name in ("4a1f", "5b2e")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert bed.names == ["cluster.yml"], "the servers were nodes already"
    configurations = [(bed.folder(name) / "ansible.cfg").read_text() for name in ("4a1f", "5b2e")]
    assert configurations[0] != configurations[1]


def test_what_a_cnf_exposes_stays_and_gets_each_new_worker(bed: Bed) -> None:
    bed.ensure()
    host = bed.machines[BALANCER.name].host(BALANCER.name)
    with Hosts(lambda _: None) as hosts:
        entries = load_balancer.of_cnf([31000, 31001])
        assert load_balancer.changed(lambda command: hosts.run(host, command), "cnf-7c", entries)
        assert not load_balancer.changed(lambda command: hosts.run(host, command), "cnf-7c", entries)
        bed.ensure(WORKERS)
        configuration = bed.machines[BALANCER.name].file("/etc/haproxy/haproxy.cfg")
        assert "server worker-w2 10.0.0.22:31001" in configuration.read_text()
        with pytest.raises(InvalidRequest, match="the load balancer has cnf-7c at port 31000, so cnf-8d cannot be there"):
            load_balancer.changed(lambda command: hosts.run(host, command), "cnf-8d", load_balancer.of_cnf([31000]))
        assert load_balancer.changed(lambda command: hosts.run(host, command), "cnf-7c", {})
    assert "31000" not in configuration.read_text() and "30080" in configuration.read_text()


def test_a_change_of_data_that_others_have_changed_is_refused_and_changes_nothing(bed: Bed) -> None:
    bed.ensure()
    host = bed.machines[BALANCER.name].host(BALANCER.name)
    with Hosts(lambda _: None) as hosts:
        outdated = load_balancer.read(hosts.run(host, load_balancer.look()))
        load_balancer.changed(lambda command: hosts.run(host, command), "cnf-7c", load_balancer.of_cnf([31000]))
        with pytest.raises(CommandFailed) as failure:
            hosts.run(host, load_balancer.change(outdated, "cnf-8d", load_balancer.of_cnf([31002])))
    assert failure.value.exit_status == load_balancer.CHANGED
    configuration = bed.machines[BALANCER.name].file("/etc/haproxy/haproxy.cfg").read_text()
    assert "bind *:31000" in configuration and "bind *:31002" not in configuration


def test_a_change_of_ports_ends_once_haproxy_listens_at_them_alone(bed: Bed) -> None:
    bed.ensure()
    balancing = bed.machines[BALANCER.name]
    with Hosts(lambda _: None) as hosts:
        for entries, has in ((load_balancer.of_cnf([31000]), True), ({}, False)):
            load_balancer.changed(lambda command: hosts.run(balancing.host(BALANCER.name), command), "cnf-7c", entries)
            assert (":31000" in balancing.file("now").read_text()) is has


def test_a_port_of_another_program_is_refused_before_anything_is_written(bed: Bed) -> None:
    bed.ensure()
    balancing = bed.machines[BALANCER.name]
    balancing.file("others").write_text("x x x 0.0.0.0:22\nx x x 127.0.0.1:31000\nx x x [::1]:31001\n")
    before = (balancing.file("/etc/haproxy/haproxy.cfg").read_text(), balancing.log)
    with Hosts(lambda _: None) as hosts, pytest.raises(DriverError, match="another program listens at port 31000 there"):
        entries = load_balancer.of_cnf([31000, 31001, 31002])
        load_balancer.changed(lambda command: hosts.run(balancing.host(BALANCER.name), command), "cnf-7c", entries)
    assert (balancing.file("/etc/haproxy/haproxy.cfg").read_text(), balancing.log) == before
    assert not balancing.file("/var/lib/k8s-cr-nodes/balancer/cnf-7c.json").exists()


def test_a_cnf_can_leave_where_another_program_has_the_port_of_another_cnf(bed: Bed) -> None:
    bed.ensure()
    balancing = bed.machines[BALANCER.name]
    with Hosts(lambda _: None) as hosts:
        change = functools.partial(load_balancer.changed, lambda command: hosts.run(balancing.host(BALANCER.name), command))
        change("cnf-7c", load_balancer.of_cnf([31000]))
        change("cnf-8d", load_balancer.of_cnf([31001]))
        balancing.file("others").write_text("x x x 0.0.0.0:31001\nx x x 0.0.0.0:9000\n")
        assert change("cnf-7c", {})
    assert ":31000" not in balancing.file("now").read_text()


def test_a_load_balancer_without_ss_is_an_error_before_anything_is_written(bed: Bed) -> None:
    """Its PATH has what the scripts need, but ss."""
    balancing = bed.machines[BALANCER.name]
    path = balancing.file("path")
    path.mkdir()
    for name in ("sh", "sudo"):
        (path / name).symlink_to(shutil.which(name) or f"{balancing.root}/bin/{name}")
    balancing.server.environment["PATH"] = str(path)
    with Hosts(lambda _: None) as hosts, pytest.raises(DriverError, match="ss is missing there: install iproute2"):
        hosts.run(balancing.host(BALANCER.name), load_balancer.look())


def test_a_reload_that_does_nothing_is_an_error_and_made_again(bed: Bed) -> None:
    bed.ensure()
    balancing = bed.machines[BALANCER.name]
    balancing.file("stuck").touch()
    balancing.file("bin/sleep").symlink_to("/bin/true")
    for _ in range(2):
        with pytest.raises(DriverError, match="HAProxy does not take its configuration: see journalctl"):
            bed.ensure(external_lb_param=balancer(node_ports=[30081]))
    assert balancing.log[-2:] == ["systemctl reload haproxy", "systemctl reload haproxy"]
    balancing.file("stuck").unlink()
    bed.ensure(external_lb_param=balancer(node_ports=[30081]))
    assert bed.names == ["cluster.yml"]


def test_data_that_nobody_has_written_so_are_reported(bed: Bed) -> None:
    bed.ensure()
    bed.machines[BALANCER.name].file("/var/lib/k8s-cr-nodes/balancer/cnf-7c.json").write_text("{broken")
    with pytest.raises(DriverError, match="the data of the load balancer cannot be read; remove what is broken"):
        bed.ensure()


def test_the_folder_goes_with_the_cluster(bed: Bed) -> None:
    bed.ensure()
    with bed.run() as one:
        for command in ansible_server.remove(one.kubespray.ansible, "4a1f") * 2:
            one.ansible(command)
    assert not bed.folder().exists() and bed.folder().parent.exists()


def test_a_load_balancer_that_is_replaced_gets_all_again(bed: Bed) -> None:
    bed.ensure()
    with bed.run() as one:
        one.leave(["lb"])
    balancing = bed.machines[BALANCER.name]
    balancing.file("/etc/haproxy/haproxy.cfg").unlink()
    for path in balancing.file("/var/lib/k8s-cr-nodes/balancer").glob("*.json"):
        path.unlink()
    bed.ensure(external_lb_param=balancer(node_ports=[30081]))
    assert "bind *:30081" in balancing.file("/etc/haproxy/haproxy.cfg").read_text()
    assert bed.names == ["cluster.yml"]
