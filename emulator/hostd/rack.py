"""All hosts in wall time: one lock, the clock, the event feed, a keeper that lets things happen, publishers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mews.emulator.clock import EmulatedClock
from mews.emulator.feed import EventFeed
from mews.emulator.hardware.emulation_context import BY_DEFAULT, EmulationContext
from mews.emulator.hardware.inventory import Hardware
from mews.emulator.host import act
from mews.emulator.host.errors import HostRefusalError
from mews.emulator.host.fleet import Hosts, Ports
from mews.emulator.host.host import Host
from mews.emulator.host.pending import PendingAction
from mews.emulator.host.tree import HostTree
from mews.emulator.settling import SettlingThread, earliest

Publisher = Callable[[str, HostTree], None]
"""Called with a host's name when its state has changed, nobody else touching it meanwhile: writes it out."""


class HostRack:
    """The hosts, shared by the threads that serve them."""

    def __init__(
        self,
        hardware: Hardware,
        *,
        clock: EmulatedClock,
        context: EmulationContext = BY_DEFAULT,
        hosts: Hosts | None = None,
    ) -> None:
        """``hosts``: machines that run already, in place of those that ``context`` would make."""
        self.hardware = hardware
        self.clock = clock
        self.feed = EventFeed()
        self._hosts = hosts or Hosts(hardware, context, listener=self.feed.emit)
        self._trees = {name: HostTree(host) for name, host in self._hosts.hosts.items()}
        self._changed = threading.Condition(threading.RLock())
        self._published = dict.fromkeys(self._trees, -1)
        self._publishers: list[Publisher] = []
        self._telemetry_publishers: list[Publisher] = []
        self._stopped = False
        self._keeper = SettlingThread(clock, next_due=self._next_due, settle=self._settle)

    def publish(self, publisher: Publisher) -> None:
        """One more who writes states out; it is called for every host now."""
        with self._changed:
            self._publishers.append(publisher)
            for name, tree in self._trees.items():
                publisher(name, tree)

    def on_telemetry(self, publisher: Publisher) -> None:
        """One more who shows telemetry: called for every host when records have changed."""
        with self._changed:
            self._telemetry_publishers.append(publisher)

    def show_telemetry(self) -> None:
        """The boards' records are others now; within ``acting``."""
        for name, tree in self._trees.items():
            for publisher in self._telemetry_publishers:
                publisher(name, tree)

    def start(self, ports: Ports | None) -> None:
        """All machines boot with this chassis table; then let what is due happen although nobody looks."""
        with self.acting():
            self._hosts.begin(self.clock.now(), ports)
        self._keeper.start()

    def stop(self) -> None:
        """End all waits and readers."""
        self._stopped = True
        self.clock.stop()
        self.feed.close()
        with self._changed:
            self._changed.notify_all()
        self._keeper.join()

    def names(self) -> tuple[str, ...]:
        """Return the hosts, in the order of the file."""
        return tuple(self._trees)

    @contextmanager
    def acting(self) -> Iterator[float]:
        """Provide the emulated time, nobody else touching the hosts; afterwards what changed is written out."""
        with self._changed:
            yield self.clock.now()
            self._write_out()
            self._changed.notify_all()
        self.clock.stir()

    def _write_out(self) -> None:
        for name, tree in self._trees.items():
            if tree.host.versions.all != self._published[name]:
                self._published[name] = tree.host.versions.all
                for publisher in self._publishers:
                    publisher(name, tree)

    @contextmanager
    def looking(self, name: str) -> Iterator[HostTree]:
        """Provide one host's files, nobody else touching it; what was due has happened.

        Raises ValueError naming those there are.
        """
        with self._changed:
            host = self._hosts.host(name)
            due_s, now_s = host.actions.agenda.next_s(), self.clock.now()
            if due_s is not None and due_s <= now_s:
                with self.acting():
                    host.settle(now_s)
            yield self._trees[name]

    def host(self, name: str) -> Host:
        """Return one host's core; only within ``acting``.

        Raises ValueError naming those there are.
        """
        return self._hosts.host(name)

    def tree(self, name: str) -> HostTree:
        """Return one host's files; only within ``acting``."""
        return self._trees[name]

    def on_event(self, chassis: str, number: int, event: str, fields: Mapping[str, Any]) -> None:
        """Take an event of a chassis."""
        with self.acting() as now_s:
            self._hosts.on_event(chassis, number, event, fields, now_s)

    def reconcile(self, ports: Ports) -> None:
        """The chassis' table is this now."""
        with self.acting() as now_s:
            self._hosts.reconcile(ports, now_s)

    def clear(self, name: str | None = None) -> None:
        """Undo the faults of one host, or of all. Raises ValueError."""
        with self.acting() as now_s:
            self._hosts.clear(now_s, name)

    def operate(self, name: str, action: Mapping[str, Any], wait_s: float) -> str:
        """Return an operator's action, waited for that many emulated seconds: ``done``, a refusal's code or
        ``waiting``.

        Raises ValueError for what is no action.
        """
        try:
            with self.acting() as now_s:
                self._hosts.host(name)
                pending = act.begin(self._trees[name], action, now_s)
            done = self.wait(pending, wait_s / self.clock.speed)
        except HostRefusalError as refusal:
            return refusal.code
        except OSError as error:
            raise ValueError(f"{action.get('path')}: {type(error).__name__}") from error
        return "done" if done else "waiting"

    def wait(self, pending: PendingAction, timeout_s: float | None = None) -> bool:
        """Wait until a deed is done, at most that many real seconds; False if it is not.

        Raises HostRefusalError as it was refused.
        """
        with self._changed:
            most_s = None if timeout_s is None else min(timeout_s, threading.TIMEOUT_MAX)
            self._changed.wait_for(lambda: pending.done or self._stopped, most_s)
            if pending.refusal is not None:
                raise pending.refusal
            return pending.done

    def view(self) -> dict[str, dict[str, Any]]:
        """Return what each host sees."""
        with self.acting() as now_s:
            for host in self._hosts.hosts.values():
                host.settle(now_s)
            return {name: host.view() for name, host in self._hosts.hosts.items()}

    def _settle(self) -> None:
        with self.acting() as now_s:
            for host in self._hosts.hosts.values():
                host.settle(now_s)

    def _next_due(self) -> float | None:
        return earliest(host.actions.agenda.next_s() for host in self._hosts.hosts.values())
