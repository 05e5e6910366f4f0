"""DMTF's protocol validator, with its tests of server-sent events: version 1.3.2 has them and never finds the stream,
as ``resources.get_default_resources`` sets its URI to None ("temporarily turn off SSE tests").

``python -m tests.contract.protocol_validator ARGUMENTS``: those of ``rf_protocol_validator``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from redfish_protocol_validator import console_scripts, resources, utils
from redfish_protocol_validator.constants import RequestType

_default = resources.get_default_resources


def with_the_stream(sut: Any, uri: str = "/redfish/v1/", uris: Any = None) -> Iterator[dict[str, Any]]:
    """The default resources, and the stream that the event service names."""
    for found in _default(sut, uri=uri, uris=uris):
        yield found
        if str(found["uri"]).rstrip("/").endswith("/EventService") and found["response"].ok:
            stream = utils.get_response_json(found["response"]).get("ServerSentEventUri")
            if stream:
                sut.set_server_sent_event_uri(stream)
                response, destination = utils.get_sse_stream(sut)
                if destination:
                    sut.set_event_dest_uri(destination)
                if response is not None:
                    yield {"uri": stream, "response": response, "request_type": RequestType.STREAMING}


if __name__ == "__main__":
    resources.get_default_resources = with_the_stream
    resources.read_target_resources.__defaults__ = ("/redfish/v1/", None, with_the_stream)
    sys.exit(console_scripts.main())
