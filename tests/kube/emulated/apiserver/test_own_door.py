"""The API server on a unix socket: for who runs in the same process."""

import asyncio
import random
import time

import pytest

from mews.certificates import make_certificates
from mews.kube.api.errors import ApiError
from mews.kube.api.resources import NAMESPACES
from mews.kube.client.http import HttpKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.apiserver.server import ApiServer

pytestmark = pytest.mark.wall


def asked(folder, token):
    """What a list of namespaces by that socket finds, of a server that speaks TLS on its port."""

    async def main():
        made = make_certificates(folder, time.time())
        store = fresh_store(time.time, random.Random(1))
        server = ApiServer(store, tokens={"secret": "admin"}, ssl_context=made.server_context())
        door = str(folder / "api.sock")
        await server.start(unix_socket=door)
        kube = HttpKube(server.url, token=token, unix_socket=door)
        try:
            return {each["metadata"]["name"] for each in (await kube.list(NAMESPACES)).items}
        finally:
            await kube.close()
            await server.stop()

    return asyncio.run(main())


def test_a_client_that_knows_no_certificate_is_answered_on_the_socket(tmp_path):
    assert "default" in asked(tmp_path, "secret")


def test_the_socket_asks_for_the_token_too(tmp_path):
    with pytest.raises(ApiError) as refused:
        asked(tmp_path, "wrong")
    assert refused.value.code == 401
