"""Which fields of a pod, and which kinds, act on emulated clusters, and which are stored and ignored.

The fields are those of the published types (``*.json`` beside this), struct by struct: each is in ``ACTING``,
``CONTAINERS_ONLY``, ``DROPPED`` or ``IGNORED``; a test holds them to the types. Fields of a struct that is ignored are
ignored with it. The page of the documentation, `mews validate` and the API's warnings are made from these tables.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

POD = "core/v1.PodSpec"

ACTING: Mapping[str, str] = {
    POD: "activeDeadlineSeconds affinity automountServiceAccountToken containers dnsConfig dnsPolicy "
    "ephemeralContainers hostAliases hostIPC hostNetwork hostPID hostname initContainers nodeName nodeSelector "
    "os overhead preemptionPolicy priority priorityClassName readinessGates resourceClaims resources "
    "restartPolicy runtimeClassName schedulerName schedulingGates securityContext serviceAccount "
    "serviceAccountName setHostnameAsFQDN shareProcessNamespace subdomain terminationGracePeriodSeconds "
    "tolerations topologySpreadConstraints volumes",
    "core/v1.Container": "args command env envFrom image imagePullPolicy lifecycle livenessProbe name ports "
    "readinessProbe resizePolicy resources restartPolicy securityContext startupProbe stdin stdinOnce "
    "terminationMessagePath terminationMessagePolicy tty volumeDevices volumeMounts workingDir",
    "core/v1.EphemeralContainer": "args command env envFrom image imagePullPolicy name resources securityContext stdin "
    "stdinOnce targetContainerName terminationMessagePath terminationMessagePolicy tty volumeMounts workingDir "
    "lifecycle livenessProbe ports readinessProbe resizePolicy restartPolicy startupProbe volumeDevices",
    "core/v1.PodSecurityContext": "fsGroup runAsGroup runAsNonRoot runAsUser supplementalGroups",
    "core/v1.SecurityContext": "allowPrivilegeEscalation capabilities privileged readOnlyRootFilesystem runAsGroup "
    "runAsNonRoot runAsUser",
    "core/v1.Volume": "configMap downwardAPI emptyDir ephemeral hostPath name persistentVolumeClaim projected secret",
    "core/v1.EphemeralVolumeSource": "volumeClaimTemplate",
    "core/v1.VolumeProjection": "configMap downwardAPI secret serviceAccountToken",
    "core/v1.EmptyDirVolumeSource": "medium sizeLimit",
    "core/v1.VolumeMount": "mountPath name readOnly subPath subPathExpr",
    "core/v1.VolumeDevice": "devicePath name",
    "core/v1.EnvVarSource": "configMapKeyRef fieldRef resourceFieldRef secretKeyRef",
    "core/v1.Lifecycle": "postStart preStop",
    "core/v1.ContainerPort": "containerPort hostIP hostPort name protocol",
    "core/v1.PodResourceClaim": "name resourceClaimName resourceClaimTemplateName",
    "core/v1.ResourceRequirements": "claims limits requests",
}
"""Struct -> its fields that act. A struct that is reached and not named here acts as a whole."""

WHOLE = frozenset(
    (
        *("Affinity", "NodeAffinity", "PreferredSchedulingTerm", "NodeSelectorTerm", "NodeSelectorRequirement"),
        *("NodeSelector", "PodAffinity", "WeightedPodAffinityTerm", "PodAffinityTerm", "PodAntiAffinity"),
        *("TopologySpreadConstraint", "Toleration", "PodSchedulingGate", "PodReadinessGate", "PodOS", "HostAlias"),
        *("PodDNSConfig", "PodDNSConfigOption"),
        *("EnvVar", "ConfigMapKeySelector", "ObjectFieldSelector", "ResourceFieldSelector", "SecretKeySelector"),
        *("EnvFromSource", "ConfigMapEnvSource", "SecretEnvSource", "Capabilities", "ResourceClaim"),
        *("LifecycleHandler", "ExecAction", "HTTPGetAction", "HTTPHeader", "SleepAction", "TCPSocketAction"),
        *("Probe", "GRPCAction", "ContainerResizePolicy", "HostPathVolumeSource", "KeyToPath"),
        *("ConfigMapVolumeSource", "DownwardAPIVolumeSource", "DownwardAPIVolumeFile", "SecretVolumeSource"),
        *("ProjectedVolumeSource", "ConfigMapProjection", "DownwardAPIProjection", "SecretProjection"),
        *("PersistentVolumeClaimVolumeSource", "PersistentVolumeClaimTemplate", "PersistentVolumeClaimSpec"),
        *(
            "ServiceAccountTokenProjection",
            "TypedLocalObjectReference",
            "TypedObjectReference",
            "VolumeResourceRequirements",
        ),
    )
)
"""Structs of core/v1 all of whose fields act."""

CONTAINERS_ONLY: Mapping[str, str] = {
    "core/v1.PodSecurityContext": "supplementalGroups",
    "core/v1.SecurityContext": "allowPrivilegeEscalation capabilities privileged",
}
"""Those of ``ACTING`` that act where the image runs in a container of this machine's Docker engine; a process and a
played container do without."""

PROCESSES_ONLY: Mapping[str, str] = {
    POD: "dnsConfig dnsPolicy setHostnameAsFQDN",
    "core/v1.EmptyDirVolumeSource": "medium",
    "core/v1.EphemeralContainer": "targetContainerName",
}
"""Those of ``ACTING`` that act where the image runs as a process; containers of the Docker engine do without, and
nothing of a played one could tell."""

REFUSED_IN_CONTAINERS: Mapping[str, str] = {
    POD: "shareProcessNamespace",
    "core/v1.Container": "volumeDevices",
    "core/v1.EphemeralContainer": "volumeDevices",
}
"""Those of ``ACTING`` that a container of the Docker engine is refused for, with CreateContainerConfigError; a played
container does without."""

DROPPED: Mapping[str, str] = {
    POD: "hostnameOverride",
    "core/v1.Container": "restartPolicyRules",
    "core/v1.EphemeralContainer": "restartPolicyRules",
    "core/v1.EnvVarSource": "fileKeyRef",
    "core/v1.Lifecycle": "stopSignal",
    "core/v1.Volume": "image",
    "core/v1.VolumeProjection": "clusterTrustBundle podCertificate",
}
"""Dropped by the API server, as Kubernetes 1.34 does while a feature gate is off."""


class Ignored(Struct, frozen=True):
    """Fields of a struct that are stored and ignored: ``why``, a clause; ``since``: the release of Mews that first said
    so."""

    struct: str
    fields: str
    why: str
    since: str = "0.3.0"


_SYSTEM = "no emulated node has a kernel that could confine a container"
_DRIVERS = "no driver of this volume runs on emulated nodes"

IGNORED: tuple[Ignored, ...] = (
    Ignored(POD, "enableServiceLinks", "containers get the variables of the Service kubernetes alone"),
    Ignored(POD, "hostUsers", _SYSTEM),
    Ignored(POD, "imagePullSecrets", "no registry is asked by the nodes; the Docker engine uses its own logins"),
    Ignored(
        "core/v1.PodSecurityContext",
        "appArmorProfile fsGroupChangePolicy seLinuxChangePolicy seLinuxOptions seccompProfile "
        "supplementalGroupsPolicy sysctls",
        _SYSTEM,
    ),
    Ignored("core/v1.PodSecurityContext", "windowsOptions", "emulated nodes run Linux"),
    Ignored("core/v1.SecurityContext", "appArmorProfile procMount seLinuxOptions seccompProfile", _SYSTEM),
    Ignored("core/v1.SecurityContext", "windowsOptions", "emulated nodes run Linux"),
    Ignored("core/v1.VolumeMount", "mountPropagation recursiveReadOnly", "nothing is mounted while a container runs"),
    Ignored(
        "core/v1.Volume",
        "awsElasticBlockStore azureDisk azureFile cephfs cinder csi fc flexVolume flocker gcePersistentDisk gitRepo "
        "glusterfs iscsi nfs photonPersistentDisk portworxVolume quobyte rbd scaleIO storageos vsphereVolume",
        _DRIVERS,
    ),
)
"""What is stored and ignored."""

IGNORED_KINDS: Mapping[tuple[str, str], str] = {
    ("certificates.k8s.io", "CertificateSigningRequest"): "nobody approves or signs it: certificatesigningrequest-*",
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): "requests are neither queued nor limited",
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): "requests are neither queued nor limited",
    ("storage.k8s.io", "VolumeAttachment"): "nothing attaches volumes: persistentvolume-attach-detach-controller",
}
"""(group, kind) -> why nothing acts on it here, with the controller of a real cluster that does."""

NEEDS_ADD_ONS: Mapping[tuple[str, str], str] = {
    ("networking.k8s.io", "Ingress"): "an ingress controller",
    ("networking.k8s.io", "IngressClass"): "an ingress controller",
    ("networking.k8s.io", "NetworkPolicy"): "a network plugin that enforces it",
    ("storage.k8s.io", "CSIDriver"): "a CSI driver",
    ("storage.k8s.io", "CSINode"): "a CSI driver",
    ("storage.k8s.io", "CSIStorageCapacity"): "a CSI driver",
    ("storage.k8s.io", "VolumeAttributesClass"): "a CSI driver",
}
"""(group, kind) -> what must be installed on a real cluster, too, before anything acts on it."""

ACTING_KINDS: Mapping[str, str] = {
    "": "Binding ComponentStatus ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolumeClaim "
    "PersistentVolume Pod PodTemplate ReplicationController ResourceQuota Secret ServiceAccount Service",
    "apiregistration.k8s.io": "APIService",
    "autoscaling": "HorizontalPodAutoscaler",
    "apps": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
    "events.k8s.io": "Event",
    "authentication.k8s.io": "SelfSubjectReview TokenReview",
    "authorization.k8s.io": "LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview "
    "SubjectAccessReview",
    "batch": "CronJob Job",
    "networking.k8s.io": "IPAddress ServiceCIDR",
    "policy": "PodDisruptionBudget",
    "rbac.authorization.k8s.io": "ClusterRoleBinding ClusterRole RoleBinding Role",
    "storage.k8s.io": "StorageClass",
    "admissionregistration.k8s.io": "MutatingWebhookConfiguration ValidatingAdmissionPolicy "
    "ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration",
    "apiextensions.k8s.io": "CustomResourceDefinition",
    "scheduling.k8s.io": "PriorityClass",
    "coordination.k8s.io": "Lease",
    "node.k8s.io": "RuntimeClass",
    "discovery.k8s.io": "EndpointSlice",
    "resource.k8s.io": "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice",
}
"""Group -> its kinds that something acts on here, or that are data and nothing else."""
