"""The server's certificate can be replaced over Redfish; connections see the new one, and a bad one changes nothing."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mews.emulator.inventory_file import load_hardware
from mews.emulator.serve import ChassisServer
from mews.emulator.tls import first_certificate, made_for_a_while

pytestmark = pytest.mark.wall

FIXTURES = Path(__file__).parents[2] / "fixtures" / "hardware"
SERVICE = "/redfish/v1/CertificateService"
ACTION = f"{SERVICE}/Actions/CertificateService.ReplaceCertificate"


def made_identity() -> str:
    """A new certificate with its key."""
    made = made_for_a_while()
    return made.certificate.read_text() + made.key.read_text()


@pytest.fixture
def server() -> Iterator[ChassisServer]:
    running = ChassisServer(load_hardware(FIXTURES / "demo.yaml"), tls=made_for_a_while())
    running.start()
    yield running
    running.stop()


class Caller:
    """The administrator, who trusts the given certificate and no other."""

    def __init__(self, server: ChassisServer, trusted: str) -> None:
        ready = server.ready()
        self.address = ready["chassis"]["A"]["redfish"].removeprefix("https://")
        account = ready["accounts"]["redfish"]
        word = base64.b64encode(f"{account['user']}:{account['password']}".encode()).decode()
        self.headers = {"Authorization": f"Basic {word}", "Content-Type": "application/json"}
        self.context = ssl.create_default_context(cadata=trusted)

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any, dict[str, str]]:
        connection = http.client.HTTPSConnection(self.address, timeout=60, context=self.context)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), self.headers)
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text else None, {k.lower(): v for k, v in answer.getheaders()}
        finally:
            connection.close()

    def certificate(self) -> tuple[str, str]:
        """URI and text of the certificate in use, found by walking."""
        _, manager, _ = self.ask("GET", "/redfish/v1/Managers")
        _, first, _ = self.ask("GET", manager["Members"][0]["@odata.id"])
        _, protocol, _ = self.ask("GET", first["NetworkProtocol"]["@odata.id"])
        _, listed, _ = self.ask("GET", protocol["HTTPS"]["Certificates"]["@odata.id"])
        (link,) = (each["@odata.id"] for each in listed["Members"])
        return link, self.ask("GET", link)[1]["CertificateString"]


def served(server: ChassisServer) -> str:
    """What a new connection is shown."""
    host, port = server.ready()["chassis"]["A"]["redfish"].removeprefix("https://").split(":")
    return ssl.get_server_certificate((host, int(port)), timeout=60)


def test_a_replaced_certificate_is_shown_to_new_connections_and_by_the_resource(server):
    caller = Caller(server, served(server))
    link, before = caller.certificate()
    assert before == served(server)
    new = made_identity()
    body = {"CertificateString": new, "CertificateType": "PEM", "CertificateUri": {"@odata.id": link}}
    status, _, headers = caller.ask("POST", ACTION, body)
    assert (status, headers["location"]) == (204, link)
    assert served(server) == first_certificate(new) != before
    with pytest.raises(ssl.SSLCertVerificationError):
        caller.ask("GET", "/redfish/v1/")
    shown = Caller(server, first_certificate(new)).certificate()[1]
    assert shown == first_certificate(new)
    assert "PRIVATE KEY" not in shown


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        ({"CertificateString": "no certificate"}, 400, "ActionParameterValueConflict"),
        ({"CertificateType": "PKCS7"}, 400, "ActionParameterValueNotInList"),
        ({"CertificateUri": {"@odata.id": "/redfish/v1/Managers"}}, 400, "ActionParameterValueTypeError"),
        ({"Surprise": 1}, 400, "ActionParameterUnknown"),
        ({"CertificateType": None}, 400, "ActionParameterMissing"),
    ],
)
def test_one_that_cannot_be_used_is_refused_and_the_old_one_stays(server, change, status, message):
    before = served(server)
    caller = Caller(server, before)
    link, _ = caller.certificate()
    body = {"CertificateString": made_identity(), "CertificateType": "PEM", "CertificateUri": {"@odata.id": link}}
    sent = {name: value for name, value in {**body, **change}.items() if value is not None}
    got, said, _ = caller.ask("POST", ACTION, sent)
    names = [each["MessageId"].rpartition(".")[2] for each in said["error"]["@Message.ExtendedInfo"]]
    assert (got, names) == (status, [message])
    assert served(server) == before


def test_a_certificate_without_its_key_is_refused(server):
    before = served(server)
    caller = Caller(server, before)
    link, _ = caller.certificate()
    lone = {"CertificateString": first_certificate(made_identity()), "CertificateType": "PEM"}
    assert caller.ask("POST", ACTION, {**lone, "CertificateUri": {"@odata.id": link}})[0] == 400
    assert served(server) == before


REQUEST = f"{SERVICE}/Actions/CertificateService.GenerateCSR"
COLLECTION = {"@odata.id": "/redfish/v1/Managers/BMC/NetworkProtocol/HTTPS/Certificates"}


def issued(request_text: str) -> str:
    """The certificate that an authority issues upon a signing request, which it checks."""
    from datetime import UTC, datetime, timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    request = x509.load_pem_x509_csr(request_text.encode())
    assert request.is_signature_valid
    key = ec.generate_private_key(ec.SECP256R1())
    begins = datetime(2026, 1, 1, tzinfo=UTC)
    names = request.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    built = (
        x509.CertificateBuilder()
        .subject_name(request.subject)
        .issuer_name(x509.Name([]))
        .public_key(request.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(begins + timedelta(days=3650))
        .add_extension(names.value, critical=False)
        .sign(key, hashes.SHA256())
    )
    return built.public_bytes(serialization.Encoding.PEM).decode()


def test_a_certificate_issued_upon_a_signing_request_needs_no_key(server):
    caller = Caller(server, served(server))
    link, before = caller.certificate()
    asked = {
        "CommonName": "chassis-a", "Country": "DE", "AlternativeNames": ["localhost", "127.0.0.1"],
        "CertificateCollection": COLLECTION,
    }  # fmt: skip
    status, body, _ = caller.ask("POST", REQUEST, asked)
    assert status == 200
    assert "PRIVATE" not in body["CSRString"]
    made = issued(body["CSRString"])
    put = {"CertificateString": made, "CertificateType": "PEM", "CertificateUri": {"@odata.id": link}}
    assert caller.ask("POST", ACTION, put)[0] == 204
    assert served(server).strip() == made.strip() != before.strip()


def test_a_certificate_without_key_and_without_a_signing_request_is_refused(server):
    caller = Caller(server, served(server))
    link, before = caller.certificate()
    put = {"CertificateType": "PEM", "CertificateUri": {"@odata.id": link}}
    put["CertificateString"] = first_certificate(made_identity())
    assert caller.ask("POST", ACTION, put)[0] == 400
    assert served(server) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"CommonName": None}, "ActionParameterMissing"),
        ({"CommonName": 7}, "ActionParameterValueTypeError"),
        ({"Country": "Germany"}, "ActionParameterValueConflict"),
        ({"AlternativeNames": "localhost"}, "ActionParameterValueTypeError"),
        ({"AlternativeNames": ["ö.example"]}, "ActionParameterValueConflict"),
        ({"KeyPairAlgorithm": "TPM_ALG_RSA"}, "ActionParameterValueNotInList"),
        ({"CertificateCollection": {"@odata.id": "/redfish/v1"}}, "ActionParameterValueTypeError"),
        ({"Colour": "blue"}, "ActionParameterUnknown"),
    ],
)
def test_a_signing_request_with_wrong_parameters_is_refused(server, change, message):
    caller = Caller(server, served(server))
    asked = {"CommonName": "a", "CertificateCollection": COLLECTION, **change}
    status, body, _ = caller.ask("POST", REQUEST, {name: value for name, value in asked.items() if value is not None})
    assert status == 400
    assert body["error"]["code"].endswith(f".{message}")
