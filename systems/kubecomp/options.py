"""What a file may say under ``stack.kubecomp`` (contract kubecomp.md section 2)."""

# No annotations from __future__: pydantic would have to read each of them from its text again.
from typing import Annotated, Any, Literal, Self

from pydantic import AliasChoices, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from mews.kube.system.options import FLAG, OptionsModel, model_of
from mews.systems.kubecomp.config import KubeCompConfig, Timing
from mews.systems.kubecomp.faults import check_mode, chosen_faults

RESOURCE_PATTERN = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"

_LABEL: Any = Annotated[str, Field(strict=True, pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")]
_SUBDOMAIN: Any = Annotated[str, Field(strict=True, pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")]
_VARIABLE: Any = Annotated[str, Field(strict=True, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
_KINDS: dict[str, Any] = {
    "resource": Annotated[str, Field(strict=True, pattern=RESOURCE_PATTERN, description="domain/name")],
    "device_kind": Annotated[str, Field(strict=True, min_length=1)],
    "device_env": _VARIABLE,
    "uuid_env": _VARIABLE,
    "plugin_socket": Annotated[str, Field(strict=True, pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]*$")],
    "scheduler_name": _SUBDOMAIN,
    "namespace": _LABEL,
    "policy": Literal["both", "best-fit", "least-demand", "none"],
    "scoring": Literal["profile", "alone"],
}

_WORDS = {
    "device_kind": "the kind of device that is pooled",
    "device_env": "the variable in which a container finds its devices' pool-wide IDs",
    "uuid_env": "the variable in which a container finds its devices' UUIDs",
    "plugin_socket": "the socket of DisagGPU-DevMgr in the kubelet's folder of device plugins",
    "scheduler_name": "the schedulerName that pods give",
    "namespace": "where its parts keep their objects",
    "policy": "how a node is chosen by equation 1: both of its terms, one of them, or none",
    "scoring": "profile: equation 1 and the default Score plugins; alone: equation 1, and ties by name",
    "partial": "move what there is where there are too few candidates",
    "strict_fcfs": "no pod is placed before one that came earlier",
    "marks_all": "annotate all pods with use_falcon, and keep that; default: where stack.replace has a Reconfig-Mgr",
}
_TIMING_WORDS = {
    "device_poll_s": "DisagGPU-DevMgr's rest between two readings of the chassis",
    "pool_poll_s": "Reconfig-Mgr's rest between two readings of a pool for its published list",
    "heartbeat_s": "how often a node's report is written when nothing changed",
    "report_stale_s": "a report without a heartbeat for this long is stale: none of the node's devices is a candidate",
    "consent_fresh_s": "consent that is not renewed for this long no longer counts",
    "withdrawal_check_s": "DevMgr's rest between two looks at the kubelet while a withdrawal is asked for",
    "withdrawal_timeout_s": "how long Reconfig-Mgr waits for consent before it asks the device back",
    "withdrawal_lease_s": "how long a request for withdrawal stands unless it is renewed",
    "chassis_timeout_s": "after this long a chassis operation without an answer has an unknown outcome",
    "read_back_poll_s": "the pause between two readings that look for a change",
    "read_back_bound_s": "after this long a change that the table does not show did not happen",
    "retries": "how often an attach or detach is tried in all",
    "retry_backoff_s": "the pause before the second try; it doubles with each",
    "requeue_first_s": "the first pause before a pod that cannot be served is looked at again",
    "requeue_last_s": "the longest of these pauses",
    "vanish_reads": "a device that this many readings in a row lack is gone",
    "empty_settle_s": "an empty pod-resources list counts once it has been empty this long",
    "mig_poll_s": "how often DevMgr asks the driver which GPUs are in MIG mode",
    "holder_patience_s": "how long DevMgr waits for processes to close a device that is taken off its host",
    "removal_timeout_s": "after this long a removal, or a rescan, that blocks is given up",
    "refusal_backoff_s": "how long a device that its host refused is no candidate; doubles up to requeue_last_s",
    "grant_grace_s": "how long a device of Allocate counts as held though pod-resources does not show it yet",
}

TimingOptions = model_of(
    Timing, "KubeCompTiming", "Periods, patience and retries; in seconds of the API's time.", words=_TIMING_WORDS
)

SharedOptions = model_of(
    KubeCompConfig,
    "KubeCompShared",
    "Options of all parts, as in their file; keys of ``timing`` are accepted here, too.",
    omit=(
        *("chassis", "nodes", "timing", "allocate", "sysfs_root", "nvidia_smi"),
        *("removal", "mode", "faults", "permit_bound", "foreign"),
    ),
    kinds=_KINDS,
    words=_WORDS,
    more={
        "timing": (TimingOptions, Field(default_factory=TimingOptions)),
        **{name: (info.annotation, info) for name, info in TimingOptions.model_fields.items()},
    },
)


class KubeCompSchedulerOptions(SharedOptions):  # type: ignore[valid-type, misc]
    """Options of the KubeComp scheduler."""

    strict_fcfs: FLAG = Field(
        default=False,
        validation_alias=AliasChoices("strict_fcfs", "strictFcfs"),
        description=_WORDS["strict_fcfs"],
    )


class KubeCompPermitOptions(OptionsModel):
    """The published Permit, of mode public."""

    bound: Literal["10+30n", "15+5n"] = Field(
        default="10+30n",
        description="how long it waits for n devices, in seconds: 10+30n as in the logs of the measured runs, or 15+5n "
        "as in the published head",
    )


class KubeCompOptions(OptionsModel):
    """Which parts of KubeComp run, and their options (kubecomp.md section 2). ``null`` leaves a part out."""

    model_config = ConfigDict(alias_generator=to_camel)

    scheduler: KubeCompSchedulerOptions | None = Field(default_factory=KubeCompSchedulerOptions)
    reconfig_manager: SharedOptions | None = Field(default_factory=SharedOptions)  # type: ignore[valid-type]
    device_manager: SharedOptions | None = Field(default_factory=SharedOptions)  # type: ignore[valid-type]
    config: SharedOptions = Field(  # type: ignore[valid-type]
        default_factory=SharedOptions, description="options shared by all parts, as in their file"
    )

    mode: Literal["corrected", "public"] = Field(
        default="corrected",
        description="public: the published implementation, with its faults, as it was measured; implies removal: "
        "surprise",
    )
    faults: dict[str, FLAG] | tuple[str, ...] | None = Field(
        default=None, description="of mode public: the named faults, or all except false ones; default: all"
    )
    permit: KubeCompPermitOptions | None = Field(default=None, description="of mode public: the bound of Permit")
    removal: Literal["orderly", "surprise"] = Field(
        default="orderly",
        description="orderly: a host releases a GPU step by step before it is detached; surprise: the host gets no "
        "notice, as in the published code",
    )

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        faults = self._faults()
        removal = self.removal if "removal" in self.model_fields_set or self.mode == "corrected" else "surprise"
        check_mode(self.mode, faults, removal, permit=self.permit.bound if self.permit else None)
        return self

    def _faults(self) -> tuple[str, ...]:
        if self.mode == "corrected" and self.faults is None:
            return ()
        return chosen_faults(self.faults)

    def changes(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what was said of the fields of ``KubeCompConfig`` and of ``Timing``: of the shared options first, then
        of the parts, of which the scheduler has the last word."""
        config: dict[str, Any] = {"removal": self.removal} if "removal" in self.model_fields_set else {}
        if self.mode == "public":
            config = {"mode": self.mode, "faults": self._faults(), "removal": "surprise", "partial": True}
            config |= {"permit_bound": self.permit.bound} if self.permit else {}
        timing: dict[str, Any] = {}
        for part in (self.config, self.reconfig_manager, self.device_manager, self.scheduler):
            given = {} if part is None else part.given()
            timing |= given.pop("timing", {})
            timing |= {name: given.pop(name) for name in TimingOptions.model_fields if name in given}
            config |= given
        return config, timing
