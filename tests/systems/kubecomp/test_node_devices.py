from __future__ import annotations

from mews.kube.deviceplugin.port import ContainerDevices, PluginDevice, PodDevices
from mews.systems.kubecomp.holders import GpuHolders, granted, listed, unknown
from mews.systems.kubecomp.node_devices import LocalDevice, NodeDevices
from mews.systems.kubecomp.policy import Claim, Consent
from mews.systems.kubecomp.records import WithdrawRequest

GPU = "falcon.com/gpu"
IDS = ("0-a", "0-b", "0-c")


def device(gpuid: str, uuid: str = "") -> LocalDevice:
    return LocalDevice(gpuid, uuid or f"GPU-{gpuid}", "A", gpuid[2:])


def hold(book: NodeDevices, *gpuids: str) -> None:
    entries = tuple(ContainerDevices(GPU, (gpuid,)) for gpuid in gpuids)
    pods = [PodDevices("user", "default", (("main", entries),))]
    book.holders = listed(book.holders, pods, GPU, now_s=0.0, empty_settle_s=2.0)


def node(*held: str) -> NodeDevices:
    book = NodeDevices()
    hold(book, *held)
    see(book, *IDS)
    return book


def see(book: NodeDevices, *gpuids: str) -> None:
    begun, book.round = book.round, book.round + 1
    book.seen([device(gpuid) for gpuid in gpuids], round_begun=begun)


def ask(book: NodeDevices, *gpuids: str, claims: list[Claim] | None = None, now_s: float = 0.0) -> None:
    requests = {gpuid: WithdrawRequest(f"r-{gpuid}", 100.0) for gpuid in gpuids}
    book.asked(requests, now_s=now_s, claims=[] if claims is None else claims)


def shown(book: NodeDevices) -> dict[str, str]:
    return {entry.id: entry.health for entry in book.announced()}


def test_what_is_on_the_nodes_ports_is_announced_in_order() -> None:
    assert node().announced() == tuple(PluginDevice(gpuid) for gpuid in IDS)


def test_a_free_device_that_left_is_dropped_and_one_in_use_stays_unhealthy() -> None:
    book = node("0-b")
    see(book, "0-a")
    assert shown(book) == {"0-a": "Healthy", "0-b": "Unhealthy"}
    see(book, *IDS)
    assert shown(book) == dict.fromkeys(IDS, "Healthy")


def test_a_device_without_a_uuid_is_unhealthy_and_so_is_one_in_use_whose_uuid_changed() -> None:
    book = node("0-b")
    book.seen([LocalDevice("0-a", "", "A", "a"), device("0-b", "GPU-other"), device("0-c", "GPU-new")], round_begun=1)
    assert shown(book) == {"0-a": "Unhealthy", "0-b": "Unhealthy", "0-c": "Healthy"}
    assert book.uuid("0-c") == "GPU-new"
    assert book.why_not("0-a") == "is unhealthy"


def test_a_withdrawn_device_is_out_of_the_list_and_refused() -> None:
    book = node()
    ask(book, "0-a")
    assert list(shown(book)) == ["0-b", "0-c"]
    assert book.why_not("0-a") == "is withdrawn"
    assert book.why_not("0-x") == "is unknown"
    assert book.why_not("0-b") is None


def test_a_device_in_use_or_just_granted_is_not_withdrawn() -> None:
    book = node("0-a")
    book.holders = granted(book.holders, ["0-b"], 0.0)
    ask(book, "0-a", "0-b")
    assert list(shown(book)) == list(IDS)
    assert book.refused == {"0-a": "r-0-a", "0-b": "r-0-b"}


def test_while_the_kubelet_is_silent_no_request_is_answered() -> None:
    book = node()
    book.holders = unknown(book.holders)
    requests = {"0-a": WithdrawRequest("r", 100.0)}
    book.asked(requests, now_s=0.0, claims=[])
    assert book.unanswered(requests, 0.0)
    assert list(shown(book)) == list(IDS)


def test_a_node_gives_nothing_away_that_its_bound_pods_still_need() -> None:
    book = node("0-a")
    claims = [Claim("default/user", "n", 1, bound=True), Claim("default/next", "n", 1, bound=True)]
    ask(book, "0-b", "0-c", claims=claims)
    assert list(shown(book)) == ["0-a", "0-c"]
    assert book.refused == {"0-c": "r-0-c"}


def test_consent_needs_that_the_kubelet_has_let_go_and_nobody_holds_it() -> None:
    book = node()
    ask(book, "0-a")
    assert not book.consent({"0-a", "0-b"}, now_s=1.0, renew_s=5.0)
    assert book.consent({"0-b"}, now_s=2.0, renew_s=5.0)
    assert book.consents == {"0-a": Consent("r-0-a", 2.0)}
    assert not book.consent({"0-b"}, now_s=6.0, renew_s=5.0), "still fresh"
    assert book.consent({"0-b"}, now_s=7.0, renew_s=5.0)
    hold(book, "0-a")
    assert book.consent({"0-b"}, now_s=8.0, renew_s=5.0)
    assert book.consents == {}, "taken back: it has a holder after all"


def test_a_device_asked_back_is_announced_again_by_a_reading_that_began_later() -> None:
    book = node()
    ask(book, "0-a")
    begun = book.round
    ask(book)
    book.seen([device(gpuid) for gpuid in IDS], round_begun=begun)
    assert "0-a" not in shown(book), "this reading may be older than the change"
    book.round += 1
    see(book, *IDS)
    assert list(shown(book)) == list(IDS)


def test_a_lapsed_request_is_as_none() -> None:
    book = node()
    ask(book, "0-a")
    ask(book, "0-a", now_s=100.0)
    see(book, *IDS)
    see(book, *IDS)
    assert list(shown(book)) == list(IDS)
    assert book.consents == {}


def test_before_anything_is_known_everything_is_in_use() -> None:
    assert GpuHolders().uses("0-a")
