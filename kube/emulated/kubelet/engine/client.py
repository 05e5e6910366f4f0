"""The Docker engine of this machine: its SDK's calls off the event loop, and what becomes of what they leave behind.

Containers are to have this machine's network and its files, so an engine elsewhere, in a virtual machine or in a
network of its own is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct, field

from mews.kube.emulated.kubelet.engine.stream import EngineStream
from mews.kube.emulated.kubelet.errors import EngineUnavailableError, PullError

if TYPE_CHECKING:
    from docker import APIClient

_LOG = logging.getLogger("mews.kubelet.engine")
OWNER_LABEL = "mews.dev/owner"
"""On every container: the runtime folder of the cluster that made it."""

MACHINE_LABEL = "mews.dev/machine"
"""The machine whose runtime folders those are: an engine may be shared."""

_TIMEOUT_S = 120.0
_AT_ONCE = 16
_REMOVAL_S, _LOOK_S = 60.0, 0.1
_GONE = 404

_Answer = TypeVar("_Answer")


class LocalImage(Struct, frozen=True):
    """An image that the engine has: its digest, who it runs as, its variables, how it is stopped."""

    id: str
    size: int = 0
    user: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    stop_signal: str = "SIGTERM"


class ContainerEngine:
    """A connection to the engine; ``owner`` is written on all that it makes."""

    def __init__(self, api: APIClient, owner: str) -> None:
        self._api = api
        self._owner = owner
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="mews-engine")

    @classmethod
    def connect(cls, owner: str) -> ContainerEngine:
        """Blocks until the engine has answered.

        Raises EngineUnavailableError, ModuleNotFoundError where the SDK is not installed.
        """
        return cls(_connected(), owner)

    @property
    def labels(self) -> Mapping[str, str]:
        """By which what this engine made is found again."""
        return {OWNER_LABEL: self._owner, MACHINE_LABEL: _machine()}

    async def call(self, method: str, *args: Any, **options: Any) -> Any:
        """Return a method of the SDK's ``APIClient``.

        Raises docker.errors.APIError.
        """
        return await self._apart(lambda: getattr(self._api, method)(*args, **options))

    async def stream(self, method: str, *args: Any, **options: Any) -> EngineStream:
        """Return a method that answers with a connection to standard streams."""
        return await self._apart(lambda: EngineStream.of(getattr(self._api, method)(*args, **options)))

    async def _apart(self, work: Callable[[], _Answer]) -> _Answer:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def image(self, reference: str) -> LocalImage | None:
        """Return the image as the engine has it, None where it would have to be pulled."""
        from docker.errors import APIError

        try:
            found = await self.call("inspect_image", reference)
        except APIError as error:
            if error.response is not None and error.response.status_code in (400, _GONE):
                return None
            raise
        config = found.get("Config") or {}
        variables = dict(entry.partition("=")[::2] for entry in config.get("Env") or ())
        return LocalImage(
            str(found["Id"]),
            int(found.get("Size") or 0),
            str(config.get("User") or ""),
            variables,
            str(config.get("StopSignal") or "SIGTERM"),
        )

    async def pull(self, reference: str) -> None:
        """Have the engine pull an image.

        Raises PullError.
        """
        from docker.errors import DockerException
        from requests.exceptions import RequestException

        def pull() -> None:
            repository, tag = _repository_and_tag(reference)
            for line in self._api.pull(repository, tag=tag, stream=True, decode=True):
                if "error" in line:
                    raise PullError(one_line(str(line["error"])))

        try:
            await self._apart(pull)
        except (DockerException, RequestException) as error:
            raise PullError(explained(error)) from error

    async def close(self) -> None:
        """Remove all that this engine made, and leave it."""
        from docker.errors import DockerException
        from requests.exceptions import RequestException

        try:
            await self._apart(lambda: _remove(self._api, self._owner.__eq__))
        except (DockerException, RequestException) as error:
            _LOG.warning("containers of %s are left to the engine: %s", self._owner, explained(error))
        self._threads.shutdown()
        self._api.close()


def remove_containers(of_owner: Callable[[str], bool]) -> None:
    """Remove the containers of owners for which that is true. Blocks.

    Raises EngineUnavailableError.
    """
    api = _connected()
    try:
        _remove(api, of_owner)
    finally:
        api.close()


def check_engine() -> None:
    """Raise EngineUnavailableError unless containers of emulated nodes can run here. Blocks."""
    _connected().close()


def explained(error: Exception) -> str:
    """Return what the engine says was wrong, in one line."""
    return one_line(str(getattr(error, "explanation", None) or error))


def one_line(text: str) -> str:
    """White space as single blanks."""
    return " ".join(text.split())


def _connected() -> APIClient:
    import docker
    from docker.errors import DockerException
    from docker.utils import kwargs_from_env

    try:
        given = kwargs_from_env()
    except (DockerException, OSError) as error:
        raise EngineUnavailableError(f"DOCKER_HOST, DOCKER_TLS_VERIFY, DOCKER_CERT_PATH: {_cause(error)}") from error
    url = str(given.get("base_url") or "unix:///var/run/docker.sock")
    if not url.startswith(("unix:", "http+unix:", "/")):
        raise EngineUnavailableError(f"DOCKER_HOST={url}: must be a socket of this machine (unix://)")
    api: APIClient | None = None
    try:
        _knock(url)
        api = docker.APIClient(**{**given, "base_url": url}, version="auto", timeout=_TIMEOUT_S)
        about = api.info()
    except (DockerException, OSError) as error:
        if api is not None:
            api.close()
        raise EngineUnavailableError(f"no Docker engine answers at {url}: {_cause(error)}") from error
    reason = _unfit(about)
    if reason:
        api.close()
        raise EngineUnavailableError(f"the Docker engine at {url} {reason}")
    return api


def _knock(url: str) -> None:
    """Raises OSError where nobody listens: the SDK would leave its socket open."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knocking:
        knocking.connect("/" + url.partition(":")[2].lstrip("/") if ":" in url else url)


def _cause(error: Exception) -> str:
    """Return the innermost reason, such as ``No such file or directory``."""
    found: BaseException = error
    while found.__cause__ is not None or found.__context__ is not None:
        found = found.__cause__ or found.__context__ or found
    return one_line(getattr(found, "strerror", None) or str(found) or type(found).__name__)


def _unfit(about: Mapping[str, Any]) -> str:
    """Return why the containers of that engine cannot share this machine's network and files."""
    if about.get("OSType", "linux") != "linux":
        return f"runs containers of {about['OSType']}: Linux containers are needed"
    if "Docker Desktop" in str(about.get("OperatingSystem")):
        return "is Docker Desktop's, whose containers have a virtual machine's network"
    if any("name=rootless" in str(option) for option in about.get("SecurityOptions") or ()):
        return "is rootless: its containers do not have this machine's network"
    if any("name=userns" in str(option) for option in about.get("SecurityOptions") or ()):
        return "maps users to others (userns-remap): its containers cannot have this machine's network"
    return ""


def _remove(api: APIClient, of_owner: Callable[[str], bool]) -> None:
    from docker.errors import APIError

    mine = [OWNER_LABEL, f"{MACHINE_LABEL}={_machine()}"]
    pause, until = threading.Event(), time.monotonic() + _REMOVAL_S
    while time.monotonic() < until:
        listed: Iterable[Mapping[str, Any]] = api.containers(all=True, filters={"label": mine})
        found = [each["Id"] for each in listed if of_owner(str(each["Labels"][OWNER_LABEL]))]
        if not found:
            return
        for container in found:
            with contextlib.suppress(APIError):  # it is just being removed: seen in the next list
                api.remove_container(container, v=True, force=True)
        pause.wait(_LOOK_S)


def _machine() -> str:
    return socket.gethostname()


def _repository_and_tag(reference: str) -> tuple[str, str]:
    """Return them with a digest in place of a tag; ``latest`` where there is neither, as the SDK would pull all tags
    then."""
    if "@" in reference:
        name, _, digest = reference.partition("@")
        return name, digest
    head, slash, last = reference.rpartition("/")
    name, _, tag = last.partition(":")
    return f"{head}{slash}{name}", tag or "latest"
