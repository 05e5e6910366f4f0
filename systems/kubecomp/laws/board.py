"""What KubeComp's laws know of a run: requests for withdrawal with their answers, moves under way, pods, nodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from msgspec import Struct, field

from mews.kube.system.invariant import LineBook
from mews.kube.system.journal import Line
from mews.systems.kubecomp.records import DEMAND, DST_NODE, GPU_DEMAND, USE_FALCON

KEPT = 4
"""Of each device's withdrawals and moves so many are remembered: a line may come ``lag_s`` late."""
ENDED_KEPT = 500
"""Of the pods that ended: a cluster may stay up for days."""
BY_HAND = "chassis"
"""The step of a scenario that operates a chassis in an operator's place."""

BOARD_EVENTS = frozenset(
    {("api", "asked"), ("api", "asked-back"), ("api", "consented"), ("api", "consent-ended"), ("api", "refused")}
    | {("api", "move-begun"), ("api", "move-ended"), ("step", "begun"), ("step", "passed"), ("step", "failed")}
)
POD_EVENTS = frozenset(
    {("api", "created"), ("api", "bound"), ("api", "deleted"), ("api", "phase"), ("api", "annotations")}
    | {("kubelet", "devices"), ("kubelet", "allocated"), ("kubelet", "pod-ended"), ("kubelet", "rejected")}
)


class Withdrawal(Struct):
    """One request for one device and what became of it. ``consents``: the lines of its consent, renewals too."""

    gpuid: str
    node: str
    request: str
    asked: Line
    consents: deque[Line] = field(default_factory=lambda: deque(maxlen=8))
    consent_ended: Line | None = None
    refused: Line | None = None
    asked_back: Line | None = None

    def consent_before(self, t: float) -> Line | None:
        """Return the last word of its consent that was given by then."""
        return next((line for line in reversed(self.consents) if line.t <= t), None)


class Move(Struct):
    """One move as it was written down."""

    begun: Line
    ended: Line | None = None

    def was_open(self, t: float, lag_s: float) -> bool:
        """Return whether it was under way then, as far as lines tell that come so late."""
        return self.begun.t <= t + lag_s and (self.ended is None or self.ended.t >= t - lag_s)


class LawPod(Struct):
    """A pod; ``annotations`` are KubeComp's, ``noted`` the line of their last change, ``wanted`` the first one that
    named a node; ``cleared``: the line since when nothing is wanted for it."""

    created: Line
    requests: dict[str, float]
    uid: str
    node: str = ""
    bound: Line | None = None
    ended: Line | None = None
    annotations: dict[str, str] = field(default_factory=dict)
    noted: Line | None = None
    wanted: Line | None = None
    cleared: Line | None = None
    held: int = 0

    @property
    def target(self) -> str:
        """The node that is to be composed for it."""
        return self.annotations.get(DST_NODE, "") if self.annotations.get(USE_FALCON) == "true" else ""

    @property
    def demand(self) -> int:
        """How many devices that node lacks."""
        text = self.annotations.get(GPU_DEMAND, self.annotations.get(DEMAND, "0"))
        return int(text) if text.isdigit() else 0


class Board(LineBook):
    """A reducer over lines; several laws share one, and each line is taken once."""

    def __init__(self) -> None:
        super().__init__()
        self.pods: dict[str, LawPod] = {}
        """By ``pod/namespace/name``."""
        self.announced: dict[str, dict[str, tuple[str, ...]]] = {}
        """Node -> resource -> healthy devices in its plugin's list."""
        self.eased: dict[str, Line] = {}
        """Node -> the last line by which it had more, or was asked for less."""
        self._withdrawals: dict[str, deque[Withdrawal]] = {}
        self._moves: dict[str, deque[Move]] = {}
        self._hands: dict[int, Line] = {}
        self._ended: deque[tuple[str, str]] = deque()

    def _book(self, line: Line) -> None:
        if line.layer == "step":
            self._step(line)
        elif line.layer == "kubelet":
            self._kubelet(line)
        elif line.actor.startswith("pod/"):
            self._pod(line)
        elif line.actor.startswith("withdrawal/"):
            self._withdrawal(line)
        elif line.actor.startswith("move/"):
            self._move(line)

    # Questions

    @property
    def by_hand(self) -> bool:
        """Whether a step of the scenario operates a chassis now."""
        return bool(self._hands)

    def withdrawal(self, gpuid: str, request: str) -> Withdrawal | None:
        """Return that request."""
        return next((each for each in self._withdrawals.get(gpuid, ()) if each.request == request), None)

    def before(self, line: Line) -> Withdrawal | None:
        """Return the last request for the device of a line of its withdrawals that was made before that line."""
        found = self._withdrawals.get(line.fields["gpuid"], ())
        return next((each for each in reversed(found) if each.asked is not line), None)

    def standing(self, gpuid: str, t: float, lag_s: float) -> Withdrawal | None:
        """Return the request for that device that stood then."""
        for each in reversed(self._withdrawals.get(gpuid, ())):
            if each.asked.t <= t + lag_s and (each.asked_back is None or each.asked_back.t >= t - lag_s):
                return each
        return None

    def all_standing(self) -> Iterator[Withdrawal]:
        """Yield the requests that stand now."""
        for each in self._withdrawals.values():
            if each[-1].asked_back is None:
                yield each[-1]

    def move(self, gpuid: str, t: float, lag_s: float) -> Line | None:
        """Return how the move was written down that was under way then."""
        moves = reversed(self._moves.get(gpuid, ()))
        return next((each.begun for each in moves if each.was_open(t, lag_s)), None)

    def last_move(self, gpuid: str) -> Line | None:
        """Return how the device's last move was written down."""
        moves = self._moves.get(gpuid)
        return moves[-1].begun if moves else None

    def is_moving(self) -> bool:
        """Return whether a move is under way."""
        return any(each[-1].ended is None for each in self._moves.values())

    def on_node(self, node: str) -> Iterator[LawPod]:
        """Live pods that are bound there."""
        return (pod for pod in self.pods.values() if pod.node == node and pod.ended is None)

    # Lines

    def _step(self, line: Line) -> None:
        step = line.fields.get("step", 0)
        if line.event == "begun" and line.fields.get("do") == BY_HAND:
            self._hands[step] = line
        elif line.event != "begun":
            self._hands.pop(step, None)

    def _kubelet(self, line: Line) -> None:
        node, fields = line.actor.partition("/")[2], line.fields
        if line.event == "devices":
            lists = self.announced.setdefault(node, {})
            if set(fields["healthy"]) - set(lists.get(fields["resource"], ())):
                self.eased[node] = line
            lists[fields["resource"]] = tuple(fields["healthy"])
        elif line.event == "allocated":
            pod = self.pods.get(f"pod/{fields['pod']}")
            if pod is not None and pod.uid == fields["uid"]:
                pod.held += len(fields["devices"])
        elif line.event in ("pod-ended", "rejected"):
            self._end(f"pod/{fields['pod']}", fields["uid"], line) if "pod" in fields else self._end_uid(line)

    def _end_uid(self, line: Line) -> None:
        for actor, pod in self.pods.items():
            if pod.uid == line.fields["uid"]:
                self._end(actor, pod.uid, line)

    def _pod(self, line: Line) -> None:
        fields = line.fields
        if line.event == "created":
            self.pods[line.actor] = LawPod(line, dict(fields.get("requests") or {}), fields["uid"], fields["node"])
            return
        pod = self.pods.get(line.actor)
        if pod is None or fields.get("uid") != pod.uid:
            return
        if line.event == "annotations":
            self._annotate(pod, line)
        elif line.event == "bound":
            pod.node, pod.bound = fields["node"], line
            if pod.target not in ("", pod.node):
                self.eased[pod.target] = line
        elif line.event == "deleted" or (line.event == "phase" and fields["phase"] in ("Succeeded", "Failed")):
            self._end(line.actor, pod.uid, line)

    def _annotate(self, pod: LawPod, line: Line) -> None:
        mine = {name: line.fields["annotations"][name] for name in NAMES if name in line.fields["annotations"]}
        if not mine:
            return
        before = pod.target
        for name, value in mine.items():
            pod.annotations.pop(name, None)
            if value is not None:
                pod.annotations[name] = str(value)
        pod.noted = line
        pod.wanted = pod.wanted or (line if pod.target else None)
        pod.cleared = None if pod.target else line
        if before not in ("", pod.target):
            self.eased[before] = line

    def _end(self, actor: str, uid: str, line: Line) -> None:
        pod = self.pods.get(actor)
        if pod is not None and pod.uid == uid and pod.ended is None:
            pod.ended = line
            self._ended.append((actor, uid))
            if len(self._ended) > ENDED_KEPT:
                self._forget(*self._ended.popleft())
            for node in {pod.node, pod.target} - {""}:
                self.eased[node] = line

    def _forget(self, actor: str, uid: str) -> None:
        if actor in self.pods and self.pods[actor].uid == uid:
            del self.pods[actor]

    def _withdrawal(self, line: Line) -> None:
        fields = line.fields
        gpuid, request = fields["gpuid"], fields["request"]
        if line.event == "asked":
            new = Withdrawal(gpuid, fields["node"], request, line)
            self._withdrawals.setdefault(gpuid, deque(maxlen=KEPT)).append(new)
            return
        found = self.withdrawal(gpuid, request)
        if found is None:
            return
        if line.event == "consented":
            found.consents.append(line)
            found.consent_ended = None
        elif line.event == "consent-ended":
            found.consent_ended = line
        elif line.event == "refused":
            found.refused = line
        else:
            found.asked_back = line

    def _move(self, line: Line) -> None:
        moves = self._moves.setdefault(line.fields["gpuid"], deque(maxlen=KEPT))
        if line.event == "move-begun":
            moves.append(Move(line))
        elif moves:
            moves[-1].ended = line


NAMES = (USE_FALCON, DST_NODE, GPU_DEMAND, DEMAND)
