"""Two pods on MIG devices of one GPU, and one on another GPU: each hears the XIDs of what it has, and no other."""

import json
import sys

import pytest

from tests.kube.deviceplugin.test_nvidia_plugin import ask, until
from tests.kube.deviceplugin.test_nvidia_plugin_mig import running, xid

pytestmark = pytest.mark.wall

LAST = 62
LISTENING = f"""
import pynvml as p
p.nvmlInit()
heard = p.nvmlEventSetCreate()
p.nvmlDeviceRegisterEvents(p.nvmlDeviceGetHandleByIndex(0), p.nvmlEventTypeXidCriticalError, heard)
print("listening", flush=True)
xid = 0
while xid != {LAST}:
    try:
        event = p.nvmlEventSetWait_v2(heard, 1000)
    except p.NVMLError_Timeout:
        continue
    xid = event.eventData
    print(xid, event.gpuInstanceId, flush=True)
"""
WHOLE_GPU = 0xFFFFFFFF


@pytest.fixture
def up(tmp_path):
    with running(tmp_path) as found:
        yield found


def begin(up, name, device):
    """A pod that prints the XIDs of the device that its variable names; what it has printed so far, as a function."""
    pods = f"{up.ready['api']}/api/v1/namespaces/default/pods"
    container = {"name": "main", "image": "busybox", "command": [sys.executable, "-c", LISTENING],
                 "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": device}]}  # fmt: skip
    spec = {"containers": [container], "restartPolicy": "Never", "nodeName": "host-1"}
    ask(pods, "POST", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})

    def printed():
        state = json.loads(ask(f"{pods}/{name}"))["status"]
        assert state.get("phase") != "Failed", ask(f"{pods}/{name}/log")
        return ask(f"{pods}/{name}/log").split("\n")[:-1] if state.get("phase") in ("Running", "Succeeded") else []

    until(lambda: printed() == ["listening"], f"{name} to listen")
    return printed


def test_an_xid_of_an_instance_reaches_its_pod_alone(up):
    assert "All done." in up.smi("-i", "0", "-mig", "1")
    assert up.smi("mig", "-i", "0", "-cgi", "19,19", "-C").count("created compute instance") == 2
    rows = [line.split() for line in up.smi("mig", "-i", "0", "-lgi").splitlines() if "1g.10gb" in line]
    listed = up.smi("-L")
    parts = [line.rpartition(" ")[2].strip(")") for line in listed.splitlines() if "MIG-" in line]
    whole = next(line.rpartition(" ")[2].strip(")") for line in listed.splitlines() if line.startswith("GPU 1:"))
    first, second, other = (begin(up, f"pod-{n}", one) for n, one in enumerate((*parts, whole)))
    xid(up, "01", 48, mig_device=1)
    until(lambda: len(second()) >= 2, "the XID to reach its pod")
    xid(up, "01", LAST)
    until(lambda: len(first()) >= 2 and len(second()) >= 3, "the GPU's own XID to reach both pods")
    own = rows[1][rows[1].index("1g.10gb") + 2]
    assert first() == ["listening", f"{LAST} {WHOLE_GPU}"]
    assert second() == ["listening", f"48 {own}", f"{LAST} {WHOLE_GPU}"]
    assert other() == ["listening"]
