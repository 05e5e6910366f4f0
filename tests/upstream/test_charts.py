"""Charts of others, unmodified but for ``--images``: they install, and do once what they are for."""

import re
import shutil
from pathlib import Path

import pytest

from ci.reference.charts import CLASSES, WAYS, charts, page
from mews.kube.emulated.kubelet.mount_namespace import filters_lacking
from tests.upstream.building import NotBuiltError
from tests.upstream.charts import FOLDER, Client, images_file
from tests.upstream.charts import charts as known
from tests.upstream.up import cluster

CHARTS = known()
INSTALLED = [name for name, chart in CHARTS.items() if chart.kind != "cannot"]
TOGETHER = [("kueue", "jobset"), ("node-feature-discovery", "nvidia-device-plugin")]


def test_each_row_says_how_it_is_installed_and_what_it_does():
    for row in charts():
        assert row["class"] in CLASSES, row["name"]
        assert (row["class"] in ("works", "open")) == ("needs" not in row), row["name"]
        assert sum(way in row for way in WAYS) == (row["class"] != "cannot"), row["name"]
        assert bool(row.get("done")) == (row["class"] != "cannot"), row["name"]
        assert (FOLDER / row.get("job", "")).exists(), row["name"]
    jobs = {row["job"] for row in charts() if "job" in row}
    assert {path.name for path in FOLDER.iterdir()} == jobs | {"together-kueue-jobset.yaml"}


def test_the_reference_has_a_row_for_each():
    rows = re.findall(r"^\| ([\w-]+) \| (v[\d.]+) \| .+ \| ([^|:]+).* \| .+ \|$", page(), re.MULTILINE)
    assert rows == [(row["name"], row["version"], CLASSES[row["class"]]) for row in charts()]


REAL = ("--scheduler", "real", "--controllers", "real")


def installed(names, folder, then, options=()):
    """The charts on a cluster, one after the other; ``then`` uses them."""
    if filters_lacking():
        pytest.skip(f"no network of pods: {filters_lacking()}")
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not on PATH")
    chosen = [CHARTS[name] for name in names]
    try:
        images = images_file(folder, chosen)
    except NotBuiltError as error:
        pytest.skip(f"{error}; {'; '.join(chart.programs().command() for chart in chosen)}")
    with cluster(["--stack", "none", "--images", str(images), *options]) as ready:
        client = Client(ready["kubeconfig"], folder)
        for chart in chosen:
            client.install(chart)
        then(client, chosen)


@pytest.mark.upstream
@pytest.mark.parametrize("name", INSTALLED)
def test_a_chart_installs_unmodified_and_does_its_work(name, tmp_path):
    installed([name], tmp_path, lambda client, chosen: client.work(*chosen))


@pytest.mark.upstream
@pytest.mark.parametrize("name", ["jobset", "keda"])
def test_a_chart_works_beside_the_real_scheduler_and_controllers(name, tmp_path):
    if any(shutil.which(program) is None for program in ("kube-scheduler", "kube-controller-manager")):
        pytest.skip("kube-scheduler and kube-controller-manager are not on PATH")
    installed([name], tmp_path, lambda client, chosen: client.work(*chosen), REAL)


@pytest.mark.upstream
@pytest.mark.parametrize("names", TOGETHER, ids="+".join)
def test_two_charts_work_together(names, tmp_path):
    def then(client, chosen):
        for chart in chosen:
            client.work(chart)
        both = Path(FOLDER / f"together-{'-'.join(names)}.yaml")
        if both.exists():  # a JobSet that Kueue admits
            client.run("kubectl", "apply", "-f", str(both))
            client.run("kubectl", "wait", "--for=condition=Completed", "jobset/queued", "--timeout", "120s")
            admitted = "--for=jsonpath={.status.admission.clusterQueue}=everyone"
            client.run("kubectl", "wait", admitted, "workload", "--all", "--timeout", "30s")

    installed(names, tmp_path, then)
