"""Put a case to one server."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.differential.model import JSON, Answer, Case, Run, Sent
from tests.differential.normal import normal, normal_text, parsed

AGENT = "suite/1.0"
_PATIENCE_S = 60.0
_SETTLED_IN_S, _LOOK_S = 30.0, 0.3
_STARTING = "storage is (re)initializing"
"""What the real server answers, with a Retry-After, while it takes a changed definition in; client-go asks again."""


@dataclass(frozen=True, slots=True)
class Side:
    """One server, and the folder in which kubectl runs against it."""

    url: str
    token: str
    folder: Path
    kubectl: Path
    session: Any


async def ask(
    side: Side, cases: Mapping[str, tuple[Case, ...]], *, pauses: float = 1.0
) -> dict[tuple[str, str], Answer]:
    """All cases in order, with so many times the pauses that they name; answers by area and name."""
    found = {}
    for area, members in cases.items():
        for case in members:
            if case.after_s:
                await asyncio.sleep(case.after_s * pauses)
            found[area, case.name] = await (run(side, case) if isinstance(case, Run) else _put_until(side, case))
    return found


async def _put_until(side: Side, sent: Sent) -> Answer:
    deadline_s = asyncio.get_running_loop().time() + _SETTLED_IN_S
    while True:
        answer = await put(side, sent)
        is_early = sent.until and answer["status"] != sent.until
        if not (is_early or _is_starting(answer)) or asyncio.get_running_loop().time() > deadline_s:
            return answer
        await asyncio.sleep(_LOOK_S)


def _is_starting(answer: Answer) -> bool:
    return answer["status"] == 429 and _STARTING in str(answer["body"])


async def put(side: Side, sent: Sent) -> Answer:
    """One request; the answer without what may differ from run to run."""
    from yarl import URL

    headers = {"Accept": sent.accept, "Authorization": f"Bearer {side.token}", "User-Agent": AGENT, **sent.headers}
    headers = {name: value for name, value in headers.items() if value}
    body = sent.body if sent.edits is None else sent.edits[1](await _stored(side, sent.edits[0], headers))
    data = sent.raw if sent.raw is not None else None if body is None else json.dumps(body).encode()
    if data is not None and sent.content_type:
        headers["Content-Type"] = sent.content_type
    url = URL(side.url + sent.path, encoded=True)
    skipped = ("Content-Type",) if not sent.content_type else ()
    async with side.session.request(
        sent.method, url, data=data, headers=headers, skip_auto_headers=skipped
    ) as response:
        text = (await response.read()).decode(errors="replace")
        return {
            "status": response.status,
            "type": response.headers.get("Content-Type", ""),
            "cache": response.headers.get("Cache-Control", ""),
            "audit": "Audit-Id" in response.headers,
            "retry": response.headers.get("Retry-After", ""),
            "warnings": response.headers.getall("Warning", []),
            "body": normal(parsed(text, response.headers.get("Content-Type", "")), owned=sent.owned),
        }


async def _stored(side: Side, path: str, headers: Mapping[str, str]) -> Any:
    """The object as it is now, or that there is none: an area whose objects may be refused asks on."""
    async with side.session.get(side.url + path, headers=headers) as response:
        found = await response.json()
    assert response.status in (200, 404), f"{path}: {found}"
    return found


async def run(side: Side, command: Run) -> Answer:
    """One kubectl command; 60 s at most."""
    environment = {
        "PATH": os.environ.get("PATH", ""),
        "HOME": str(side.folder),
        "KUBECONFIG": str(side.folder / "kubeconfig"),
        "KUBECTL": str(side.kubectl),
        **command.env,
    }
    process = await asyncio.create_subprocess_exec(
        str(side.kubectl),
        *shlex.split(command.line),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=side.folder,
        env=environment,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(command.stdin.encode()), _PATIENCE_S)
    except TimeoutError:
        process.kill()
        out, err = await process.communicate()
        err += b"killed: it took too long"
    return {
        "exit": process.returncode,
        "stdout": shown(out.decode(errors="replace"), command),
        "stderr": normal_text(err.decode(errors="replace"), is_sorted=command.sorted),
    }


def shown(text: str, command: Run) -> Any:
    """JSON as such, otherwise lines."""
    if text.lstrip().startswith(("{", "[")):
        value = parsed(text, JSON)
        if not isinstance(value, str):
            return normal(value)
    return normal_text(text, is_sorted=command.sorted)
