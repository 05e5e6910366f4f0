"""What the configuration manager keeps of its own: groups, availability and detection (contract cohdi.md 2.5)."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from mews.emulator.dialects.cdim.errors import RefusedRequestError
from mews.emulator.dialects.identities import identity

DEFAULT_GROUP = "00000000-0000-7000-8000-000000000000"
"""The group of all resources that were put into no other; listed first, as its ID is the lowest."""


class ResourceGroup(Struct):
    """A group; times as they are shown."""

    id: str
    name: str
    description: str
    created: str
    updated: str

    def shown(self) -> dict[str, Any]:
        """ResourceGroupOnly."""
        return {
            "id": self.id,
            "name": self.name,
            "description": self.description,
            "createdAt": self.created,
            "updatedAt": self.updated,
        }


class ResourceGroups:
    """The groups of one chassis, by the IDs of devices. Kept as long as the process lives."""

    def __init__(self, chassis: str, made: str) -> None:
        self._chassis, self._made = chassis, made
        self.reset()

    def reset(self) -> None:
        """Leave the default group alone, with all resources in it, available and detected."""
        self._numbers = 0
        first = ResourceGroup(DEFAULT_GROUP, "default", "", self._made, self._made)
        self._groups = {DEFAULT_GROUP: first}
        self._members: dict[str, str] = {}
        self._withheld: set[str] = set()
        self._undetected: set[str] = set()

    def all(self) -> list[ResourceGroup]:
        """Return them in ascending order of their IDs."""
        return sorted(self._groups.values(), key=lambda group: group.id)

    def find(self, group: str) -> ResourceGroup:
        """Return the group with that ID.

        Raises RefusedRequestError.
        """
        if group not in self._groups:
            raise RefusedRequestError("unknown", f"resource group {group}: does not exist")
        return self._groups[group]

    def add(self, name: str, description: str, now: str) -> ResourceGroup:
        """Add a group, with a new ID."""
        self._numbers += 1
        made = ResourceGroup(identity("group", self._chassis, str(self._numbers)), name, description, now, now)
        self._groups[made.id] = made
        return made

    def change(self, group: str, name: str, description: str, now: str) -> ResourceGroup:
        """Give a group another name and description.

        Raises RefusedRequestError.
        """
        found = self._own(group)
        found.name, found.description, found.updated = name, description, now
        return found

    def remove(self, group: str) -> None:
        """Remove a group that has no resources.

        Raises RefusedRequestError.
        """
        self._own(group)
        if group in self._members.values():
            raise RefusedRequestError("invalid", f"resource group {group}: resources belong to it")
        del self._groups[group]

    def _own(self, group: str) -> ResourceGroup:
        found = self.find(group)
        if group == DEFAULT_GROUP:
            raise RefusedRequestError("invalid", f"resource group {group}: the default group cannot be changed")
        return found

    def group_of(self, device: str) -> str:
        """Return the group that a device belongs to."""
        return self._members.get(device, DEFAULT_GROUP)

    def put(self, device: str, groups: list[str]) -> None:
        """Put a device into the one group that is named.

        Raises RefusedRequestError.
        """
        if len(groups) != 1:
            raise RefusedRequestError("invalid", f"must name one resource group, {len(groups)} are named")
        if groups[0] not in self._groups:
            raise RefusedRequestError("invalid", f"resource group {groups[0]}: does not exist")
        self._members[device] = groups[0]

    def available(self, device: str) -> bool:
        """Return whether a design may use the device, by its annotation."""
        return device not in self._withheld

    def annotate(self, device: str, *, available: bool) -> None:
        """Withhold a device from designs, or offer it again."""
        (self._withheld.discard if available else self._withheld.add)(device)

    def undetected(self, device: str) -> bool:
        """Return whether the last collection lacked the device."""
        return device in self._undetected

    def collected(self, devices: set[str], known: set[str]) -> None:
        """A collection was registered: what it lacks is undetected until the next one."""
        self._undetected = known - devices
