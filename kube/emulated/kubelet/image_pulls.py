"""A container's image: known, in the engine already, or pulled; with the events of each (pkg/kubelet/images)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.kube.emulated.kubelet.backoff import BackOff
from mews.kube.emulated.kubelet.errors import PullError, StartError
from mews.kube.emulated.kubelet.images import Image
from mews.kube.emulated.kubelet.runtime import ImageStore
from mews.kube.emulated.kubelet.tools import Tools

_ALWAYS, _NEVER = "Always", "Never"


class ImagePulls:
    """Those of one pod."""

    def __init__(self, tools: Tools, backoff: BackOff) -> None:
        self._tools = tools
        self._backoff = backoff
        self._pulled_s = 0.0
        self._cause = ""

    async def image(self, container: Mapping[str, Any], involved: Mapping[str, Any]) -> Image:
        """Return the image of a container.

        Raises StartError (``ErrImagePull``, ``ImagePullBackOff``, ``ErrImageNeverPull``).
        """
        tools, reference = self._tools, str(container.get("image", ""))
        policy = str(container.get("imagePullPolicy", ""))
        image = tools.images.find(reference)
        known = image is not None
        image = image or tools.images.stand_in(reference)
        store = tools.containerd.image_store
        if image is not None and image.container and store is not None:
            await self._had(image.container, policy, store, involved)
            return image
        if image is not None:
            text = f'Container image "{reference}" '
            text += "already present on machine" if known else "is not known here: runs idle in its place"
            tools.events.event(involved, "Normal", "Pulled", text)
            return image
        if policy == _NEVER:
            raise self._never(reference, involved)
        self._begin(reference, involved)
        cause = (
            f'failed to pull and unpack image "{reference}": failed to resolve reference "{reference}": '
            f"{reference}: not found: name it in images:, or set unknownImages: idle"
        )
        raise self._failed(reference, cause, involved)

    async def _had(self, reference: str, policy: str, store: ImageStore, involved: Mapping[str, Any]) -> None:
        """Have the engine have it, as the pod's policy says."""
        events = self._tools.events
        if policy != _ALWAYS and await store.image(reference) is not None:
            events.event(involved, "Normal", "Pulled", f'Container image "{reference}" already present on machine')
            return
        if policy == _NEVER:
            raise self._never(reference, involved)
        self._begin(reference, involved)
        began_s = self._tools.context.clock.now()
        try:
            await store.pull(reference)
        except PullError as error:
            raise self._failed(reference, str(error), involved) from error
        took = f"{self._tools.context.clock.now() - began_s:.3f}s"
        text = f'Successfully pulled image "{reference}" in {took} ({took} including waiting).'
        events.event(involved, "Normal", "Pulled", text)

    def _never(self, reference: str, involved: Mapping[str, Any]) -> StartError:
        text = f'Container image "{reference}" is not present with pull policy of Never'
        self._tools.events.event(involved, "Warning", "ErrImageNeverPull", text)
        return StartError("ErrImageNeverPull", text)

    def _begin(self, reference: str, involved: Mapping[str, Any]) -> None:
        """Raises StartError while a pull that failed is not to be tried again."""
        tools, key = self._tools, f"image {reference}"
        if self._backoff.holds(key, self._pulled_s, tools.emulated_now()) is not None:
            tools.events.event(involved, "Normal", "BackOff", f'Back-off pulling image "{reference}"')
            text = f'Back-off pulling image "{reference}": ErrImagePull: {self._cause}'
            raise StartError("ImagePullBackOff", text)
        tools.events.event(involved, "Normal", "Pulling", f'Pulling image "{reference}"')

    def _failed(self, reference: str, cause: str, involved: Mapping[str, Any]) -> StartError:
        now_s = self._tools.emulated_now()
        self._backoff.next(f"image {reference}", now_s, now_s)
        self._pulled_s, self._cause = now_s, cause
        text = f'Failed to pull image "{reference}": {cause}'
        self._tools.events.event(involved, "Warning", "Failed", text)
        return StartError("ErrImagePull", cause)
