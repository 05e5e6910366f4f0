"""Environment variables that Mews reads, and those that it gives to what it runs: the table for readers.

This module belongs to no room, as those who use them belong to all. A test holds it to the names in the code.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

READ: Mapping[str, str] = MappingProxyType(
    {
        "CC": "compiles libnvidia-ml.so.1 and nvidia-smi where the wheel has none; else cc, gcc, clang",
        "KUBEBUILDER_ASSETS": "the folder of etcd, kube-apiserver and kubectl, before those on the PATH",
        "KUBECONFIG": "the cluster that a component, or `--cluster kubeconfig`, speaks to where no option names one",
        "KUBERNETES_SERVICE_HOST": "set in pods: a component without a kubeconfig speaks to the API server there",
        "KUBERNETES_SERVICE_PORT": "set in pods: the port of that API server, by default 443",
        "MEWS_BASE_IMAGE": "the image that the component image of `--cluster kind` is built on",
        "MEWS_CACHE_DIR": "where what was compiled is kept; by default below XDG_CACHE_HOME or ~/.cache",
        "MEWS_COHDI_PROGRAMS": "the folder with CoHDI's programs, where `stack.cohdi.programs` names none",
        "MEWS_COMPONENT_IMAGE": "the image of pods of `--cluster kind` and `kubeconfig`, instead of one built now",
        "MEWS_CONTROL_TOKEN": "the token of the control API if no option names one; otherwise generated",
        "MEWS_FM_CLIENT_ID": "the client that logs in to a fabric manager, by default mews",
        "MEWS_FM_CLIENT_SECRET": "the secret of that client, by default mews",
        "MEWS_FM_CLUSTER": "the cluster that `mews conform --dialect fm` asks a cluster manager for",
        "MEWS_FM_REALM": "the realm in which a fabric manager's tokens are given, by default mews",
        "MEWS_FM_TENANT": "the tenant of a fabric manager, for clients and for `mews serve`",
        "MEWS_KIND_NODE_IMAGE": "the image of kind's nodes",
        "MEWS_REDFISH_PASSWORD": "the password of a chassis' Redfish account, for clients and for `mews serve`",
        "MEWS_REDFISH_USER": "the user of that account, by default admin",
        "MEWS_WHEEL": "when a wheel is built: x86_64, aarch64 or pure",
        "NO_COLOR": "no colours, as `--no-color`",
        "XDG_CACHE_HOME": "where caches lie, by default ~/.cache",
        "XDG_RUNTIME_DIR": "where folders of running clusters lie, by default the machine's temporary folder",
        "XDG_STATE_HOME": "where it is noted what must be removed after a killed run, by default ~/.local/state",
    }
)
"""What a user, or the platform, may set -> what it does."""

GIVEN: Mapping[str, str] = MappingProxyType(
    {
        "KUBECONFIG": "for replacements, scripts and `mews envtest`: the kubeconfig of the cluster that they belong to",
        "KUBERNETES_SERVICE_HOST": "for containers: the API server, as Kubernetes gives it",
        "KUBERNETES_SERVICE_PORT": "for containers: its port; KUBERNETES_SERVICE_PORT_HTTPS is the same",
        "MEWS_API": "for scripts of a scenario: the address of the API server",
        "MEWS_CLUSTER": "for scripts of a scenario: the backend that it runs on, as `--cluster` names it",
        "MEWS_CONTEXT": "for scripts of a scenario: the context in the kubeconfig, where it has more than one",
        "MEWS_DRIVER_ROOT": "for CoHDI's driver pods on kind: the driver root of their host",
        "MEWS_HOSTS": "for processes of pods: a file with the addresses of names in the cluster",
        "MEWS_HOST_ROOT": "for programs on a node: the folder with its sys, proc and dev",
        "MEWS_INSTANCE": "marks the processes of a `mews up`, by which `mews down` knows them",
        "MEWS_NVML_DEV": "for containers: the folder whose device files say which GPUs they see",
        "MEWS_NVML_RIGHTS": "for containers: `none` where their processes may not set anything of GPUs",
        "MEWS_NVML_STATE": "for programs that load Mews's libnvidia-ml.so.1: the state of their host",
        "MEWS_OWNER": "marks what a run leaves on the machine, so that another can remove it once the run is dead",
        "MEWS_PROGRAM": "for scripts and processes of a bug of `mews reproduce`: the published program",
        "MEWS_READY": "for scripts and the command of `mews envtest`: the file that names all addresses",
        "MEWS_SCENARIO": "for scripts of a scenario: its name",
        "MEWS_SERVICE_ACCOUNT": "for processes of pods: the folder for /var/run/secrets/kubernetes.io/serviceaccount",
        "MEWS_SPEED": "for scripts of a scenario: emulated seconds in a real one",
    }
)
"""What programs that Mews starts may read -> what it is."""
