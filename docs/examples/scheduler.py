"""A scheduler in fifteen lines: pods with schedulerName first-fit go to the first node, by name, that takes them."""

from kubernetes import client, config, watch

config.load_kube_config()  # $KUBECONFIG
core = client.CoreV1Api()
nodes = sorted(node.metadata.name for node in core.list_node().items)
for event in watch.Watch().stream(core.list_pod_for_all_namespaces, field_selector="spec.nodeName="):
    pod = event["object"]
    if event["type"] != "ADDED" or pod.spec.scheduler_name != "first-fit":
        continue
    target = client.V1ObjectReference(kind="Node", name=nodes[0])
    binding = client.V1Binding(metadata=client.V1ObjectMeta(name=pod.metadata.name), target=target)
    core.create_namespaced_binding(pod.metadata.namespace, binding, _preload_content=False)
    print(f"{pod.metadata.name} -> {nodes[0]}", flush=True)
