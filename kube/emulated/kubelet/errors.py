"""Errors of the emulated kubelet.

::

    KubeletError
    ├── ImagesError          the images file cannot be read
    ├── EngineUnavailableError    there is no container engine that emulated nodes can use
    ├── PullError           an image could not be pulled: the engine's words
    ├── StartError           a container could not be started: the waiting reason and message of a real kubelet
    └── NoSuchContainerError      log or exec asks for a container that is not there
    ExecRefusedError              exec asks for what a simulated container cannot do
"""

from __future__ import annotations


class KubeletError(Exception):
    """Anything that the emulated kubelet refuses."""


class ImagesError(KubeletError):
    """The images file: which file, which place in it, which value, what is allowed."""


class EngineUnavailableError(KubeletError):
    """Why the container engine of this machine cannot be used, in one line."""


class PullError(KubeletError):
    """An image could not be had; the message is the engine's, in one line."""


class StartError(KubeletError):
    """A container start that failed; ``reason`` (``ErrImagePull``, ``RunContainerError``) is what it waits for."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class NoSuchContainerError(KubeletError):
    """The pod or container is not on this node, or has not started yet."""


class ExecRefusedError(KubeletError):
    """A simulated container only answers what it can know: its environment."""
