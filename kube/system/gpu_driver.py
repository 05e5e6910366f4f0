"""The calls of the driver that reset a GPU, or prepare it for its removal, each made by somebody who opens NVML for
that call only.

Whoever has NVML open holds every GPU of the host (``nvmlInit`` opens all device nodes), so a component that wants to
take one away must not be the one that keeps it there.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import Protocol

CALL_LIMIT_S = 60.0
"""A program that has not answered by then is killed: a driver that hangs must not take the component with it."""


class DriverRefusalError(Exception):
    """The driver does not do it; the message says why, in the driver's words."""


class DriverMissingError(DriverRefusalError):
    """There is nothing here that makes the calls."""


class GpuDriver(Protocol):
    """One host's NVIDIA driver. ``bdf`` is a PCI address as sysfs writes it: ``0000:44:00.0``."""

    async def persistence(self, bdf: str) -> bool:
        """Return whether persistence mode is on.

        Raises DriverRefusalError.
        """
        ...

    async def set_persistence(self, bdf: str, on: bool) -> None:
        """Switch persistence mode.

        Raises DriverRefusalError.
        """
        ...

    async def divided(self) -> frozenset[str]:
        """Return the addresses of the GPUs in MIG mode.

        Raises DriverRefusalError.
        """
        ...

    async def draining(self, bdf: str) -> bool:
        """Return whether the GPU is being drained.

        Raises DriverRefusalError.
        """
        ...

    async def set_draining(self, bdf: str, on: bool) -> None:
        """Let new processes not see the GPU, or see it again.

        Raises DriverRefusalError.
        """
        ...

    async def remove(self, bdf: str) -> None:
        """Unbind the driver and remove the PCI function.

        Raises DriverRefusalError, also while a process has the GPU open.
        """
        ...

    async def reset(self, bdf: str) -> None:
        """Reset the GPU; its driver has it again some time after.

        Raises DriverRefusalError, also while a process has the GPU open, or where it has fallen off the bus.
        """
        ...


class NvidiaSmi:
    """``nvidia-smi``, one short process per call. ``env`` is added to this process' own."""

    def __init__(self, program: str, *, env: Mapping[str, str] | None = None) -> None:
        self._program = program
        self._env = dict(env or {})

    async def persistence(self, bdf: str) -> bool:
        """Return whether persistence mode is on. Raises DriverRefusalError."""
        answer = await self._run("-i", bdf, "--query-gpu=persistence_mode", "--format=csv,noheader")
        return answer.strip() == "Enabled"

    async def set_persistence(self, bdf: str, on: bool) -> None:
        """Switch persistence mode. Raises DriverRefusalError."""
        await self._run("-i", bdf, "-pm", str(int(on)))

    async def divided(self) -> frozenset[str]:
        """Return the addresses of the GPUs in MIG mode. Raises DriverRefusalError."""
        rows = await self._run("--query-gpu=pci.bus_id,mig.mode.current", "--format=csv,noheader")
        words = [[word.strip() for word in row.split(",")] for row in rows.splitlines()]
        # Its addresses have eight digits of domain, sysfs' have four.
        return frozenset(row[0].lower().removeprefix("0000") for row in words if row[1:] == ["Enabled"])

    async def draining(self, bdf: str) -> bool:
        """Return whether the GPU is being drained. Raises DriverRefusalError."""
        return (await self._run("drain", "-p", bdf, "-q")).rstrip().endswith("is: draining.")

    async def set_draining(self, bdf: str, on: bool) -> None:
        """Begin or end the drain. Raises DriverRefusalError."""
        await self._run("drain", "-p", bdf, "-m", str(int(on)))

    async def remove(self, bdf: str) -> None:
        """Unbind the driver and remove the PCI function. Raises DriverRefusalError."""
        await self._run("drain", "-p", bdf, "-r")

    async def reset(self, bdf: str) -> None:
        """Reset the GPU. Raises DriverRefusalError."""
        await self._run("--gpu-reset", "-i", bdf)

    async def _run(self, *arguments: str) -> str:
        pipe = asyncio.subprocess.PIPE
        try:
            child = await asyncio.create_subprocess_exec(
                self._program,
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=pipe,
                stderr=asyncio.subprocess.STDOUT,
                env={**os.environ, **self._env},
            )
        except FileNotFoundError as error:
            raise DriverMissingError(f"{self._program}: {error.strerror}") from error
        except OSError as error:
            raise DriverRefusalError(f"{self._program}: {error.strerror}") from error
        try:
            async with asyncio.timeout(CALL_LIMIT_S):
                output, _ = await child.communicate()
        except TimeoutError as error:
            raise DriverRefusalError(
                f"nvidia-smi {' '.join(arguments)}: no answer within {CALL_LIMIT_S:g} s"
            ) from error
        finally:
            # Also when the caller is cancelled: a child that lives on would hold every GPU.
            if child.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    child.kill()
                await child.wait()
        text = output.decode("utf-8", "replace").strip()
        if child.returncode:
            last = _why(text.splitlines()) or f"exit code {child.returncode}"
            raise DriverRefusalError(f"nvidia-smi {' '.join(arguments)}: {last}")
        return text


def _why(lines: Sequence[str]) -> str:
    """Return the last line that says something of the cause."""
    return next((line for line in reversed(lines) if line and not line.startswith("Terminating early")), "")
