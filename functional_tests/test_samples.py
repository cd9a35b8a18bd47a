"""Custom resources of other projects, with their own controllers in real pods: the driver knows none of their kinds."""

from .cluster import Cluster
from .conftest import MakeVnf, OnboardSamples


def test_certificates_are_issued_and_their_keys_go_with_them(
    onboard_samples: OnboardSamples, make_vnf: MakeVnf, cluster: Cluster
):
    controllers, certificates = onboard_samples("cert_manager", "certificates")
    manager = make_vnf(controllers.vnfd_id)
    manager.instantiate(*controllers.files, wait_timeout=120)
    web = make_vnf(certificates.vnfd_id)
    web.instantiate(*certificates.files, parameters={"NAME": "web", "DNS_NAME": "web.example.com"})

    authority, issued = (cluster.get("Secret", name, "default") for name in ("web-authority", "web"))
    assert authority and issued
    assert issued["data"]["ca.crt"] == authority["data"]["tls.crt"] != issued["data"]["tls.crt"]

    web.terminate()
    assert cluster.get("Secret", "web", "default") is None
    manager.terminate()
    assert cluster.of(manager.id) == []
