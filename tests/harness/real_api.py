"""A real API server for tests that ask it what it takes."""

import contextlib

import pytest

from mews.harness.clusters.programs import finding
from mews.harness.errors import RequirementError
from mews.harness.kubeconfig_file import write_kubeconfig


@contextlib.contextmanager
def real_api(folder):
    """Its administrator's kubeconfig, in that folder; the test is skipped where its programs are not."""
    from mews.harness.clusters.control_plane.servers import Servers

    try:
        finding.needed()
    except RequirementError as error:
        pytest.skip(str(error))
    servers = Servers()
    try:
        servers.ready()
        path = folder / "kubeconfig"
        server = {"server": servers.url, "insecure-skip-tls-verify": True}
        write_kubeconfig(path, server=server, user={"token": servers.identity.token})
        yield path
    finally:
        servers.stop()
