"""One device on one host, from the moment that its port is the host's until nothing of it is left."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from msgspec import Struct, field

from mews.emulator.hardware.addresses import Bridge, PciAddress, ports_path
from mews.emulator.hardware.cards import VIRTUAL, Card
from mews.emulator.hardware.host_profiles import ARROWS
from mews.emulator.hardware.inventory import DeviceSpec
from mews.emulator.nvml.driver_settings import NO_SETTINGS, DriverSettings
from mews.emulator.nvml.mig.instances import NO_MIG, MigState
from mews.emulator.telemetry.controls import NO_CONTROLS, BoardControls


class BringUpStage(IntEnum):
    """How far a device has come up; stage n is reached over arrow n of ``ARROWS``."""

    ABSENT = 0
    LINK = 1
    FUNCTION = 2
    DRIVER = 3
    NODE = 4
    NVML = 5


class Ecc(Struct):
    """ECC counters: of this driver load, over the board's life, and what of those was cleared."""

    corrected: int = 0
    uncorrected: int = 0
    total_corrected: int = 0
    total_uncorrected: int = 0
    cleared_corrected: int = 0
    cleared_uncorrected: int = 0


class Function(Struct, eq=False):
    """One device on one host. Only ``Host`` writes it.

    ``plugged``: the chassis has it on our port; ``link``: the chassis' side of the link is up; ``powered``: the slot;
    ``plucked``: an operator removed the function, a rescan brings it back; ``unbound``: an operator took the driver;
    ``lost``: it fell off the bus; ``failing``: NVML answers "unknown error". ``above``: the ports from the root down;
    ``rdma``: its number among the host's RDMA devices (``mlx5_N``) while its driver has it. ``physical``: of a virtual
    function the one that has it, and ``virtual`` the others' own, in order; ``autoprobe``: whether a driver takes
    those that come. What NVML's setters changed: ``controls`` until the driver lets go of the GPU, ``compute_mode``
    and ``accounting`` (0: off; else the number of the ``accounts`` that are kept) until the driver is unloaded,
    ``ecc_wanted`` for good (``ecc_mode``: as the driver found it); ``loads`` counts how often a driver has let go of
    it, ``ecc_clears`` how often the errors over its life were cleared. ``mig`` are its mode and its instances.
    ``link_threshold``: after which its idle NVLinks sleep, None: as late as can be; ``link_bandwidth``: how many are in
    use (``NVML_GPU_NVLINK_BW_MODE_*``). ``settings``: what else its driver was told; ``held``: the controls that it
    began with.
    """

    number: int
    chassis: str
    gpuid: str
    device: DeviceSpec
    card: Card
    bdf: str
    above: tuple[Bridge, ...]
    slot: int
    stage: BringUpStage = BringUpStage.ABSENT
    minor: int | None = None
    plugged: bool = True
    link: bool = True
    powered: bool = True
    plucked: bool = False
    unbound: bool = False
    lost: bool = False
    failing: bool = False
    node_hidden: bool = False
    draining: bool = False
    persistence: bool = False
    controls: BoardControls = NO_CONTROLS
    compute_mode: int = 0
    accounting: int = 0
    accounts: int = 0
    ecc_mode: bool | None = None
    ecc_wanted: bool | None = None
    ecc_clears: int = 0
    loads: int = 0
    mig: MigState = NO_MIG
    link_threshold: int | None = None
    link_bandwidth: int = 0
    settings: DriverSettings = NO_SETTINGS
    held: BoardControls = NO_CONTROLS
    driver_override: str = ""
    driver: str = ""
    stuck: str = ""
    ecc: Ecc = field(default_factory=Ecc)
    rdma: int | None = None
    physical: Function | None = None
    virtual: list[Function] = field(default_factory=list)
    autoprobe: bool = True

    def unload(self) -> None:
        """The driver lets go of it: what it kept of the GPU is gone, and a new ECC mode counts from the next one on."""
        self.draining = self.persistence = self.failing = False
        self.ecc.corrected = self.ecc.uncorrected = 0
        self.settings = self.settings.unloaded()
        mhz = self.settings.deferred_mhz
        self.held = NO_CONTROLS if mhz is None else BoardControls(memory_clocks=(mhz, mhz))
        self.controls, self.compute_mode, self.accounting = self.held, 0, 0
        self.link_threshold, self.link_bandwidth = None, 0
        self.ecc_mode = self.ecc_wanted
        self.mig = self.mig.switched(self.mig.pending)
        self.loads += 1

    def clear_errors(self) -> None:
        """The errors over its life count from 0 again."""
        self.ecc.cleared_corrected, self.ecc.cleared_uncorrected = self.ecc.total_corrected, self.ecc.total_uncorrected
        self.ecc_clears += 1

    def account(self, wanted: bool) -> None:
        """Keep accounts of its processes, begun anew, or no longer."""
        self.accounts += wanted
        self.accounting = self.accounts if wanted else 0

    @property
    def address(self) -> PciAddress:
        """Where it is."""
        return PciAddress(self.bdf, self.above)

    @property
    def path(self) -> str:
        """Where it lies below ``/sys/devices``."""
        return f"{ports_path(self.above)}/{self.bdf}"

    @property
    def bridge(self) -> str:
        """The port that leads to it."""
        return self.above[-1].bdf

    @property
    def numa_node(self) -> int:
        """The NUMA node that it is on."""
        return self.above[0].numa_node

    @property
    def top(self) -> BringUpStage:
        """The last stage of such a device; under another driver than its own that is the driver."""
        return BringUpStage.DRIVER if self.takes != self.card.driver else BringUpStage(self.card.layers)

    @property
    def takes(self) -> str:
        """The driver that has it, or would take it."""
        return self.driver or self.driver_override or self.card.driver

    @property
    def top_arrow(self) -> str:
        """The layer that completes it."""
        return ARROWS[self.top - 1]

    @property
    def ready(self) -> bool:
        """Whether a program that starts now can use it."""
        return self.stage == self.top and not (self.lost or self.failing or self.draining)

    @property
    def healthy(self) -> bool:
        """Whether NVML (or the driver, for what is no GPU) shows it and answers."""
        return self.stage == self.top and not (self.lost or self.failing)

    @property
    def next_arrow(self) -> str | None:
        """The layer that comes up next, None at the top."""
        return None if self.stage >= self.top else ARROWS[self.stage]

    @property
    def is_gpu(self) -> bool:
        """Whether the NVIDIA driver has it, or would take it."""
        return self.takes == "nvidia"

    @property
    def bound(self) -> str:
        """The driver that has it, "" for none."""
        return self.driver

    @property
    def has_function(self) -> bool:
        """Whether the device has a PCI function, so that sysfs shows it."""
        return self.stage >= BringUpStage.FUNCTION

    @property
    def has_node(self) -> bool:
        """Whether there is a /dev/nvidiaN."""
        return self.is_gpu and self.stage >= BringUpStage.NODE and not self.node_hidden

    def named(self) -> dict[str, Any]:
        """Return what every event of it bears."""
        return {
            "device": self.device.id,
            "uuid": self.device.uuid,
            "gpuid": self.gpuid,
            "kind": self.device.kind,
            "bdf": self.bdf,
            "minor": self.minor,
            "healthy": self.healthy,
        }

    def row(self) -> dict[str, Any]:
        """Return the host's view of it, for ``control``, scenarios and people."""
        virtual = {
            "rdma": None if self.rdma is None else f"mlx5_{self.rdma}",
            "virtual_functions": [{"bdf": one.bdf, "driver": one.bound or None} for one in self.virtual],
        }
        return {
            **self.named(),
            "chassis": self.chassis,
            "model": self.device.model,
            "serial": self.device.serial,
            "stage": self.stage.name.lower(),
            "driver": self.bound or None,
            "node": f"/dev/nvidia{self.minor}" if self.has_node else None,
            "nvml": self.stage == BringUpStage.NVML and not self.draining,
            "slot": self.slot,
            "bridge": self.bridge,
            "power": self.powered,
            "lost": self.lost,
            "failing": self.failing,
            "draining": self.draining,
            "persistence": self.persistence,
            "stuck": self.stuck or None,
            **({"mig": {"devices": [one.uuid for _, one in self.mig.devices()]}} if self.mig.enabled else {}),
            "ecc": {"corrected": self.ecc.corrected, "uncorrected": self.ecc.uncorrected},
            **(virtual if self.card.driver in VIRTUAL else {}),
        }
