"""Which webhooks and policies are asked again after others have changed the object (reinvocationPolicy)."""

from __future__ import annotations

from msgspec import Struct, field

from mews.kube.api.objects import Object
from mews.kube.emulated.core.store.admission import AdmissionAttributes


class Reinvocation(Struct):
    """What one request remembers, to ask webhooks and policies again: the mutating phase has at most two passes."""

    is_second: bool = False
    needed: bool = False
    last_output: Object | None = None
    previous: dict[str, None] = field(default_factory=dict)
    wanted: dict[str, None] = field(default_factory=dict)

    @classmethod
    def of(cls, attributes: AdmissionAttributes) -> Reinvocation:
        """Return that of a request."""
        if attributes.reinvocation is None:
            attributes.reinvocation = cls()
        found = attributes.reinvocation
        assert isinstance(found, Reinvocation)
        return found

    def remember(self, identity: str) -> None:
        """One that may be asked again was asked."""
        self.previous[identity] = None

    def changed(self) -> None:
        """The object is another: all begins anew once, with those that were asked before this."""
        self.needed = True
        self.require()

    def require(self) -> None:
        """Those that were asked before are to be asked again."""
        self.wanted.update(self.previous)

    def is_wanted(self, identity: str) -> bool:
        """Return whether one is to be asked in the second pass."""
        return identity in self.wanted
