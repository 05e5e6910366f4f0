"""Probes and hooks over the network, for containers that are real processes (upstream pkg/probe/http and tcp)."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable

from mews.kube.emulated.kubelet.handlers import HandlerResult, HttpGet, TcpSocket, refused, timed_out

AGENT = "kube-probe/1.34"
_LINE = 16 * 1024


async def get(action: HttpGet, timeout_s: float, place: Callable[[str], str] = str) -> HandlerResult:
    """Ask for a page; 200 to 399 is well. Redirects are not followed: they are well, as those to another host are.
    ``place`` says where on this machine an address is."""
    try:
        async with asyncio.timeout(timeout_s):
            status = await _status(action, place(action.host))
    except TimeoutError:
        return HandlerResult(False, timed_out(action))
    except ConnectionRefusedError:
        return HandlerResult(False, refused(action))
    except (OSError, ValueError, asyncio.IncompleteReadError) as error:
        return HandlerResult(False, f'Get "{action.url}": {error}')
    if 200 <= status < 400:
        return HandlerResult(True)
    return HandlerResult(False, f"HTTP probe failed with statuscode: {status}")


async def connect(action: TcpSocket, timeout_s: float, place: Callable[[str], str] = str) -> HandlerResult:
    """Open a TCP connection and close it at once."""
    try:
        async with asyncio.timeout(timeout_s):
            _, writer = await asyncio.open_connection(place(action.host), action.port)
    except TimeoutError:
        return HandlerResult(False, timed_out(action))
    except ConnectionRefusedError:
        return HandlerResult(False, refused(action))
    except OSError as error:
        return HandlerResult(False, f"dial tcp {action.host}:{action.port}: {error.strerror or error}")
    await _hang_up(writer)
    return HandlerResult(True)


async def _status(action: HttpGet, host: str) -> int:
    context = None
    if action.scheme == "https":
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection(host, action.port, ssl=context, limit=_LINE)
    try:
        own = {"host": f"{action.host}:{action.port}", "user-agent": AGENT, "accept": "*/*", "connection": "close"}
        own |= {name.lower(): value for name, value in action.headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in own.items())
        writer.write(f"GET {action.path} HTTP/1.1\r\n{head}\r\n".encode())
        await writer.drain()
        line = (await reader.readline()).decode("latin-1")
    finally:
        await _hang_up(writer)
    words = line.split()
    if len(words) < 2 or not words[0].startswith("HTTP/") or not words[1].isdigit():
        raise ValueError("EOF" if not line else f'malformed HTTP response "{line.strip()}"')
    return int(words[1])


async def _hang_up(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
