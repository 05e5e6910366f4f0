"""DisagGPU-DevMgr: one per node. Announces the pool's devices on this node's ports to its kubelet (paper section IV-E).

It opens no vendor library: what it knows comes from the chassis, the kubelet and the host's files. It withdraws devices
that Reconfig-Mgr asks for, takes them off the host, and consents once nobody can be using them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.api.objects import Object, is_terminal, key_of
from mews.kube.api.resources import CONFIGMAPS, NODES, PODS
from mews.kube.chassis.port import ChassisApi
from mews.kube.client.informer import Informer
from mews.kube.clock import rest
from mews.kube.component import Context, record
from mews.kube.deviceplugin.port import DevicePluginLink, PluginError, PodDevices, PodResources
from mews.kube.deviceplugin.registration import RegisteredPlugin, stay_registered
from mews.kube.deviceplugin.release import DeviceRequest, ReleaseState
from mews.kube.deviceplugin.remedies import withheld_gpus
from mews.kube.pulse import Pulse
from mews.kube.system.host_steps import HostSteps
from mews.systems.kubecomp import holders, policy
from mews.systems.kubecomp.config import KubeCompConfig, NodeConfig
from mews.systems.kubecomp.config_map_writer import ConfigMapWriter
from mews.systems.kubecomp.device_plugin import OPTIONS, PooledPlugin
from mews.systems.kubecomp.errors import KubeCompConfigError
from mews.systems.kubecomp.handover import Handover
from mews.systems.kubecomp.host_view import Confirm, HostView
from mews.systems.kubecomp.lent_devices import LentDevices
from mews.systems.kubecomp.mig_modes import mig_modes
from mews.systems.kubecomp.node_devices import LocalDevice, NodeDevices
from mews.systems.kubecomp.policy import Claim
from mews.systems.kubecomp.reader import ChassisReader
from mews.systems.kubecomp.records import (
    NODE_PREFIX,
    POOL_PREFIX,
    WITHDRAW_PREFIX,
    NodeReport,
    WithdrawRequest,
    heartbeat_data,
    node_report,
    pool_state,
    report_data,
    withdraw_requests,
)

_RETRY_S = 1.0


class ChassisDeviceManager:
    """One incarnation of a node's DevMgr. Everything it must know again is on the chassis, the kubelet and the API."""

    def __init__(
        self,
        context: Context,
        config: KubeCompConfig,
        node: str,
        *,
        chassis: Mapping[str, ChassisApi],
        link: DevicePluginLink,
        pod_resources: PodResources,
        confirm: Confirm | None = None,
        steps: HostSteps | None = None,
    ) -> None:
        found = config.node(node)
        if found is None:
            raise KubeCompConfigError(f"node {node!r}: is not in the configuration's nodes")
        self._context = context
        self._config = config
        self._node: NodeConfig = found
        self._link = link
        self._pod_resources = pod_resources
        self._indexed = {entry.name: entry for entry in config.chassis if entry.name in found.ports}
        self._mine = sorted(name for name in found.ports if name in chassis)
        self._reader = ChassisReader({name: chassis[name] for name in self._mine}, config, context.log)
        self._board = ConfigMapWriter(context.kube, config.namespace)
        self._book = NodeDevices(announces=not found.lent_to)
        self._lent = LentDevices(context, node, found.lent_to, self._on_handover) if found.lent_to else None
        self._on_ports: Mapping[str, LocalDevice] = {}
        self._read_in = -1
        self._here: tuple[int, list[LocalDevice]] = (-1, [])
        self._asked_in: dict[tuple[str, str], int] = {}
        self._plugin = PooledPlugin(config, self._book, self._granted, context.log)
        self._requests: dict[str, WithdrawRequest] = {}
        self._known_s = 0.0
        self._listed: Sequence[PodDevices] = ()
        self._reported: tuple[NodeReport, Mapping[str, str]] | None = None
        self._ready = asyncio.Event()
        self._asked = Pulse()
        self._changed = Pulse()
        self._host_view = HostView(confirm, self._changed.beat)
        self._writing = asyncio.Lock()
        self._handover: Handover | None = None
        self._modes = None if steps is None else mig_modes(context, config, found, steps)
        if steps is not None and config.removal == "orderly":
            self._handover = Handover(
                steps,
                self._book,
                config.timing,
                context.log,
                write_ahead=self._write_report,
                changed=self._on_handover,
            )

    async def run(self) -> None:
        """Poll, announce, answer requests for withdrawal and report, until cancelled."""
        informer = Informer(
            self._context.kube,
            CONFIGMAPS,
            namespace=self._config.namespace,
            field_selector=f"metadata.name={WITHDRAW_PREFIX}{self._node.name}",
        )
        informer.on_change(self._on_change)
        async with asyncio.TaskGroup() as group:
            group.create_task(informer.run())
            group.create_task(self._poll())
            group.create_task(self._serve())
            group.create_task(self._answer(informer))
            group.create_task(self._report())
            if self._modes is not None:
                group.create_task(self._modes.run())
            if self._handover is not None:
                group.create_task(self._handover.run())
            if self._lent is not None:
                group.create_task(self._lent.run())
            if self._node.remedied:
                group.create_task(self._remedied().run())

    def _remedied(self) -> Informer:
        """Return what the node says of broken GPUs."""
        informer = Informer(self._context.kube, NODES, field_selector=f"metadata.name={self._node.name}")

        def changed(old: Object | None, new: Object | None) -> None:
            if self._book.withhold(withheld_gpus(new)):
                self._announce()
                self._changed.beat()

        informer.on_change(changed)
        return informer

    # The chassis

    async def _poll(self) -> None:
        timing = self._config.timing
        await self._remember()
        tries = 0
        while True:
            begun = self._book.round
            full = await self._reader.read_all(self._mine)
            tries += 1
            await self._look_at_kubelet()
            here = self._attached()
            self._read_in = begun
            if self._handover is not None:
                is_whole = all(map(self._reader.has_seen, self._mine))
                self._handover.watch(here, round_begun=begun, is_whole=is_whole)
            seen = await self._host_view.look(here, lambda: self._of_my_chassis(on_my_ports=False))
            if self._modes is not None:
                is_quiet = not (self._book.has_withdrawn or self._book.out)
                self._book.divide(await self._modes.look(seen, is_quiet=is_quiet))
            self._book.seen(self._with_withheld(seen, here), round_begun=begun)
            self._book.round += 1
            if full or tries >= timing.vanish_reads:
                self._ready.set()
            self._take_requests()
            self._announce()
            await rest(timing.device_poll_s)

    def _with_withheld(self, seen: Sequence[LocalDevice], here: Sequence[LocalDevice]) -> Sequence[LocalDevice]:
        """Return them with the broken devices that the host does not see any more: announced as unhealthy they are
        known not to count, while a device that is only attached is awaited."""
        lost = [device for device in here if device.uuid in self._book.withheld and device not in seen]
        return [*seen, *lost] if lost else seen

    async def _remember(self) -> None:
        try:
            self._reader.seed(pool_state(await self._board.read(f"{POOL_PREFIX}{self._node.pool}")))
        except (ApiError, UnavailableError) as error:
            record(self._context.log, "pool-unread", error=str(error))
        while self._handover is not None:
            # Not announced before: what an earlier incarnation was taking out must not be given to anybody.
            try:
                report = node_report(await self._board.read(f"{NODE_PREFIX}{self._node.name}"))
            except (ApiError, UnavailableError) as error:
                record(self._context.log, "report-unread", error=str(error))
                await rest(_RETRY_S)
                continue
            self._book.out.update(report.removing if report is not None else {})
            return

    def _attached(self) -> list[LocalDevice]:
        """Return what the chassis has on this node's ports; looked through again once a reading has shown anything
        new."""
        if self._here[0] != self._reader.version:
            self._here = (self._reader.version, self._of_my_chassis(on_my_ports=True))
            self._on_ports = {device.gpuid: device for device in self._here[1]}
        return self._here[1]

    def _of_my_chassis(self, *, on_my_ports: bool) -> list[LocalDevice]:
        return [
            LocalDevice(self._indexed[name].gpuid(found.device), found.uuid, name, found.device)
            for name in self._mine
            for found in self._reader.devices(name)
            if (found.port == self._node.ports[name]) is on_my_ports
        ]

    # The kubelet

    async def _serve(self) -> None:
        await self._ready.wait()
        registered = RegisteredPlugin(self._plugin, self._config.plugin_socket, self._config.resource, OPTIONS)
        await stay_registered(self._context, self._link, registered, self._restarted)

    def _restarted(self) -> None:
        record(self._context.log, "kubelet-restarted", node=self._node.name)
        self._book.holders = holders.unknown(self._book.holders)

    async def _look_at_kubelet(self) -> None:
        timing, book = self._config.timing, self._book
        try:
            pods = await self._pod_resources.list()
        except PluginError as error:
            record(self._context.log, "pod-resources-failed", error=str(error))
            book.holders = holders.unknown(book.holders)
            return
        if pods is self._listed and book.holders.known and not book.holders.grants:
            self._known_s = self._now()
            return  # The very list that made it what it is.
        self._listed = pods
        before = (book.holders.held, book.holders.known)
        now_s, resource = self._now(), self._config.resource
        found = holders.listed(book.holders, pods, resource, now_s=now_s, empty_settle_s=timing.empty_settle_s)
        book.holders = holders.grants_aged(found, now_s, timing.grant_grace_s)
        if book.holders.known:
            self._known_s = now_s
        if (book.holders.held, book.holders.known) != before:
            self._changed.beat()

    def _granted(self, gpuids: Sequence[str]) -> None:
        self._book.holders = holders.granted(self._book.holders, gpuids, self._now())

    def _announce(self) -> None:
        if not self._ready.is_set():
            return
        devices = self._book.announced()
        if self._plugin.publish(devices):
            record(self._context.log, "announced", devices={device.id: device.health for device in devices})
            self._changed.beat()

    # Withdrawals

    def _on_change(self, old: Object | None, new: Object | None) -> None:
        self._requests = withdraw_requests(new)
        self._asked.beat()

    async def _answer(self, informer: Informer) -> None:
        await informer.synced()
        await self._ready.wait()
        timing = self._config.timing
        while True:
            urgent = self._book.is_withdrawing or self._book.unanswered(self._requests, self._now())
            standing = self._book.has_withdrawn or bool(self._requests)
            limit_s = timing.withdrawal_check_s if urgent else timing.device_poll_s if standing else None
            await self._asked.wait(limit_s)
            await self._withdraw()

    async def _withdraw(self) -> None:
        claims = None
        if self._book.unanswered(self._requests, self._now()):
            await self._look_at_kubelet()
            claims = await self._claims()
        self._take_requests(claims)
        self._announce()
        if self._lent is not None:
            await self._lent.ask(self._wanted())
        if self._book.has_withdrawn:
            await self._look_at_kubelet()
            await self._consent()

    def _wanted(self) -> dict[str, DeviceRequest]:
        """Return what the holder of this node's devices is asked for, by UUID."""
        return {
            device.uuid: DeviceRequest(request, self._requests[gpuid].until_s)
            for gpuid, request in self._book.withdrawn.items()
            if (device := self._on_ports.get(gpuid)) is not None and device.uuid and gpuid in self._requests
        }

    def _take_requests(self, claims: Sequence[Claim] | None = None) -> None:
        before = dict(self._book.refused)
        self._book.asked(self._requests, now_s=self._now(), claims=claims)
        for gpuid in sorted(self._book.refused.keys() - before.keys()):
            record(self._context.log, "withdrawal-refused", device=gpuid)
        if self._book.refused != before:
            self._changed.beat()

    async def _claims(self) -> list[Claim] | None:
        """Return what the pods bound to this node ask for, as the API says now; None when it does not say."""
        try:
            pods = await self._context.kube.list(PODS, field_selector=f"spec.nodeName={self._node.name}")
        except (ApiError, UnavailableError) as error:
            record(self._context.log, "pods-unread", error=str(error))
            return None
        asking = [(pod, policy.required(pod, self._config.resource)) for pod in pods.items if not is_terminal(pod)]
        return [Claim(key_of(pod), self._node.name, req, bound=True) for pod, req in asking if req]

    async def _consent(self) -> None:
        try:
            healthy = await self._pod_resources.allocatable()
        except PluginError as error:
            record(self._context.log, "pod-resources-failed", error=str(error))
            return
        allocatable = {
            gpuid for entry in healthy if entry.resource == self._config.resource for gpuid in entry.device_ids
        }
        unused = self._released(self._still_here(self._book.unused(allocatable)))
        before, off = set(self._book.consents), None if self._lent is None else set(unused)
        if self._handover is not None:
            self._handover.may_go(unused)
            off = unused.keys() & set(self._handover.off)
        renew_s = self._config.timing.consent_fresh_s / 3
        if self._book.consent(allocatable, now_s=self._now(), renew_s=renew_s, off=off):
            for gpuid in sorted(set(self._book.consents) - before):
                record(self._context.log, "consented", device=gpuid, request=self._book.consents[gpuid].request)
            self._changed.beat()

    def _still_here(self, unused: Mapping[str, str]) -> dict[str, str]:
        """Return those on this node's ports, and those that it has consented to. Any other is waited for until a
        reading that began after the request: it may have come since what was read before. Then it is refused:
        Reconfig-Mgr has read an old listing, and the device is on another host."""
        since, consents = self._asked_in, self._book.consents
        self._asked_in = {pair: since.get(pair, self._book.round) for pair in unused.items()}
        here = {}
        for gpuid, request in sorted(unused.items()):
            given = consents.get(gpuid)
            if gpuid in self._on_ports or (given is not None and given.request == request):
                here[gpuid] = request
            elif self._read_in > self._asked_in[gpuid, request]:
                self._refuse(gpuid, "it is not on this host")
        return here

    def _released(self, unused: Mapping[str, str]) -> dict[str, str]:
        """Return those that nobody uses parts of (GPUID -> request); what their holder keeps is refused."""
        if self._lent is None:
            return dict(unused)
        free = set()
        for gpuid, request in sorted(unused.items()):
            device = self._on_ports.get(gpuid)
            if device is None:
                free.add(gpuid)
            elif not device.uuid:
                self._refuse(gpuid, "its UUID is not known")
            elif (answer := self._lent.answer(device.uuid, request)) is None:
                continue
            elif answer.state is ReleaseState.REFUSED:
                self._refuse(gpuid, answer.reason)
            elif answer.state is ReleaseState.RELEASED:
                free.add(gpuid)
        return {gpuid: unused[gpuid] for gpuid in sorted(free)}

    def _refuse(self, gpuid: str, reason: str) -> None:
        record(self._context.log, "release-refused", device=gpuid, reason=reason)
        self._book.refuse(gpuid, reason)
        self._changed.beat()

    def _releasing(self) -> dict[str, float]:
        """GPUID -> until when the pods that use parts of it may take to go."""
        if self._lent is None:
            return {}
        answers = {
            gpuid: self._lent.answer(device.uuid, request)
            for gpuid, request in self._book.withdrawn.items()
            if (device := self._on_ports.get(gpuid)) is not None
        }
        return {g: a.until_s for g, a in answers.items() if a is not None and a.state is ReleaseState.RELEASING}

    def _lent_out(self) -> dict[str, int]:
        """GPUID -> how many pods use parts of it, of those that any uses."""
        users = {} if self._lent is None else self._lent.users
        if not users:
            return {}
        return {g: users[d.uuid] for g, d in sorted(self._on_ports.items()) if users.get(d.uuid)}

    # The report

    async def _report(self) -> None:
        await self._ready.wait()
        while True:
            try:
                await self._write_report()
            except (ApiError, UnavailableError) as error:
                record(self._context.log, "report-unwritten", error=str(error))
                await rest(_RETRY_S)
                continue
            await self._changed.wait(self._config.timing.heartbeat_s)

    async def _write_report(self) -> None:
        async with self._writing:  # One after the other, so that the last one written is the last one made.
            book = self._book
            healthy = book.healthy()
            report = NodeReport(
                announced=healthy,
                unhealthy=tuple(device.id for device in book.announced() if device.id not in healthy),
                held=dict(sorted({**dict.fromkeys(book.holders.grants, ""), **book.holders.held}.items())),
                refused=dict(book.refused),
                consents=dict(book.consents),
                heartbeat_s=self._known_s,
                reasons=dict(book.reasons),
                removing=dict(book.out),
                lent=self._lent_out(),
                releasing=self._releasing(),
                divided=book.divided(),
                strays=self._host_view.strays,
            )
            await self._board.write(f"{NODE_PREFIX}{self._node.name}", self._data_of(report))

    def _data_of(self, report: NodeReport) -> Mapping[str, str]:
        """Return every few seconds it is written, and mostly its heartbeat alone is new: the rest is rendered once."""
        if self._reported is not None and report.repeats(self._reported[0]):
            data = {**self._reported[1], **heartbeat_data(report)}
        else:
            data = report_data(report)
        self._reported = report, data
        return data

    def _on_handover(self) -> None:
        """What may be consented to or announced changed."""
        self._asked.beat()
        self._changed.beat()

    def _now(self) -> float:
        return self._context.clock.now()
