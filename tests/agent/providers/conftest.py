"""Each test of a reply runs for both wire formats, streamed and whole, and leaves no connection behind."""

from __future__ import annotations

import pytest

from guard.hands.cancel import CancelToken
from tests.model_server import ModelServer
from tests.model_server.clients import provider, url_of


@pytest.fixture(params=["openai", "anthropic"])
def kind(request):
    """The wire format."""
    return request.param


@pytest.fixture(params=[True, False], ids=["streamed", "whole"])
def stream(request):
    return request.param


@pytest.fixture
def cancel():
    token = CancelToken()
    yield token
    token.close()


@pytest.fixture
def talk(kind):
    """`talk(*script, **endpoint)`: a server that plays the script, and a provider that asks it."""
    opened = []

    def start(*script, **settings):
        server = ModelServer(*script).__enter__()
        api = provider(kind, url_of(kind, server), **settings)
        opened.extend((api, server))
        return server, api

    yield start
    for one in opened:
        one.close()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    """No test goes through the proxy of whoever runs it."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """A folder with a certificate of its own for 127.0.0.1, and its key."""
    import datetime
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "tests")])
    now = datetime.datetime.now(datetime.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName(
                [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("models.example")]
            ),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("certificate")
    pem = serialization.Encoding.PEM
    (folder / "cert.pem").write_bytes(built.public_bytes(pem))
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(private)
    return folder
