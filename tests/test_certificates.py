"""The certificates of a run: who can verify them, by which names, and who can read the key."""

import os
import ssl
import time
from pathlib import Path

import pytest

from mews.certificates import certificates_in, make_certificates


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> None:
    """A handshake in memory; raises ssl.SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        server.wrap_bio(to_server, to_client, server_side=True),
        client.wrap_bio(to_client, to_server, server_hostname=name),
    ]
    for _ in range(4):
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert sides[1].version() is not None


@pytest.mark.parametrize("name", ["127.0.0.1", "::1", "localhost", "kubernetes.default.svc", "box.lab", "10.0.0.7"])
def test_who_trusts_the_authority_verifies_the_server_by_each_of_its_names(tmp_path: Path, name: str):
    made = make_certificates(tmp_path, time.time(), ["box.lab", "10.0.0.7", "127.0.0.1"])
    shake_hands(made.server_context(), made.client_context(), name)


def test_nobody_verifies_it_by_another_name_or_without_the_authority(tmp_path: Path):
    made = make_certificates(tmp_path, time.time())
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shake_hands(made.server_context(), made.client_context(), "rebound.example")
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(made.server_context(), ssl.create_default_context(), "localhost")
    (tmp_path / "other").mkdir()
    other = make_certificates(tmp_path / "other", time.time())
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(made.server_context(), other.client_context(), "localhost")


def test_only_its_owner_can_read_the_key_whatever_lay_there_before(tmp_path: Path):
    there = certificates_in(tmp_path)
    there.key.write_text("old")
    there.key.chmod(0o666)
    umask = os.umask(0)
    try:
        made = make_certificates(tmp_path, time.time())
    finally:
        os.umask(umask)
    assert made == there
    assert made.key.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ca.crt", "server.crt", "server.key"]
