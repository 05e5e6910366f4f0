"""An operator by kopf: each ConfigMap labelled gang=N becomes N pods, which go with it."""

import kopf
from kubernetes import client, config


@kopf.on.startup()
def begin(**_):
    """$KUBECONFIG says where."""
    config.load_kube_config()


@kopf.on.create("", "v1", "configmaps", labels={"gang": kopf.PRESENT})
def create(name, namespace, labels, **_):
    """One pod a member, owned by the ConfigMap."""
    for number in range(int(labels["gang"])):
        container = {"name": "main", "image": "mews/gpu-hold"}
        pod = {"metadata": {"name": f"{name}-{number}"}, "spec": {"containers": [container]}}
        kopf.adopt(pod)
        client.CoreV1Api().create_namespaced_pod(namespace, pod)
