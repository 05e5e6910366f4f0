"""The words that the remediation writes into the API."""

from __future__ import annotations

from mews.kube.deviceplugin.remedies import GPUS

WORK = "remediation.mews.dev/work"
"""On a node: what the controller does there; its one writer is the controller."""
EVICTED_FOR = "remediation.mews.dev/evicted-for"
"""On a pod, written before it is evicted: the incident."""
ASKER = "remediation"
"""As whom the agent asks the holders of devices (``mews.kube.deviceplugin.release``)."""

__all__ = ["ASKER", "EVICTED_FOR", "GPUS", "WORK"]
