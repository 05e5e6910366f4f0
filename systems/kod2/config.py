"""The operator's settings, and how they are read from YAML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from mews.kube.config_text import read_config
from mews.systems.kod2.errors import Kod2ConfigError
from mews.systems.kod2.model import Mode, Options
from mews.systems.kod2.tfjob import CleanPodPolicy


class Scheduling(StrEnum):
    """Who decides where pods run: the elastic scheduler, or (the baseline) whichever scheduler the template names."""

    KOD2 = "kod2"
    TF_OPERATOR = "tf-operator"


_DEFAULT = Options()


class OperatorConfig(Struct, frozen=True):
    """``scheduling: tf-operator`` creates all pods of a job together, on any nodes, as Kubeflow's operator does.

    The next seven are the elastic scheduler's (``mews.systems.kod2.model.Options``). ``tick_s``: a pass at least that
    often. ``settle_s``: the workers of a job end within moments of one another, as each kubelet sees them; for so long
    the room of those that ended counts as held unless the job has ended, lest the next job be placed with its minimum
    on the first of it. ``start_limit_s``: a placed job that does not run by then (its image is not there, a secret is
    missing) gives its room back and waits behind all others. ``pooled_resource``: pods that ask for it are left to
    ``pool_scheduler`` and counted against the pools that ``pool_namespace`` publishes. They are called as the published
    pool calls them: one system knows the other by what it shows on the API, not by its code.

    ``clean_pod_policy`` is that of jobs that name none: ``Running`` as with tf-operator v1.0, which the paper used;
    training-operator 1.9 has ``None``. ``default_cpu`` and ``default_memory`` are what each task asks for of a job
    that asks for neither anywhere (``""``: nothing). ``cluster_domain`` ends the names in TF_CONFIG.
    """

    scheduling: str = Scheduling.KOD2.value
    mode: str = _DEFAULT.mode.value
    starve_limit_s: float = _DEFAULT.starve_limit_s
    cooldown_s: float = _DEFAULT.cooldown_s
    backfill: bool = _DEFAULT.backfill
    preemption: bool = _DEFAULT.preemption
    scale_out: bool = _DEFAULT.scale_out
    affinity: bool = _DEFAULT.affinity
    tick_s: float = 5.0
    settle_s: float = 5.0
    start_limit_s: float = 600.0
    pooled_resource: str = "falcon.com/gpu"
    pool_scheduler: str = "kubecomp-scheduler"
    pool_namespace: str = "kubecomp"
    clean_pod_policy: str = CleanPodPolicy.RUNNING.value
    default_cpu: str = "1"
    default_memory: str = "1Gi"
    cluster_domain: str = ""

    @property
    def options(self) -> Options:
        """What the policy is told."""
        return Options(
            mode=Mode(self.mode),
            starve_limit_s=self.starve_limit_s,
            cooldown_s=self.cooldown_s,
            backfill=self.backfill,
            preemption=self.preemption,
            scale_out=self.scale_out,
            affinity=self.affinity,
        )


_CHOICES = {
    "mode": [mode.value for mode in Mode],
    "scheduling": [kind.value for kind in Scheduling],
    "clean_pod_policy": [policy.value for policy in CleanPodPolicy],
}
AMOUNT = r"^(\d+(\.\d+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?)?$"
DOMAIN = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$"
_FORMS = {"default_cpu": AMOUNT, "default_memory": AMOUNT, "cluster_domain": DOMAIN}
_EXAMPLES = {AMOUNT: "a quantity, as 500m or 1Gi, or empty", DOMAIN: "a domain, as cluster.local, or empty"}
_WORDS = {str: "a text", float: "a number of seconds from 0 on", bool: "true or false"}


def config_of(document: Mapping[str, Any], where: str) -> OperatorConfig:
    """Return the configuration with these fields changed.

    Raises ConfigError in one line.
    """
    known = {field.name: type(field.default) for field in structs.fields(OperatorConfig)}
    values: dict[str, Any] = {}
    for name, value in document.items():
        if name not in known:
            raise Kod2ConfigError(f"{where}: {name}: unknown option; allowed: {', '.join(known)}")
        values[name] = _value(value, known[name], f"{where}: {name}")
        if name in _CHOICES and value not in _CHOICES[name]:
            raise Kod2ConfigError(f"{where}: {name}: {value!r}: must be one of {', '.join(_CHOICES[name])}")
    for name, form in _FORMS.items():
        if name in values and not re.fullmatch(form, values[name]):
            raise Kod2ConfigError(f"{where}: {name}: {values[name]!r}: must be {_EXAMPLES[form]}")
    return OperatorConfig(**values)


def _value(value: Any, kind: type, place: str) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or (isinstance(value, float) and value < 0):
        raise Kod2ConfigError(f"{place}: {value!r}: must be {_WORDS[kind]}")
    return value


def load_config(path: Path | str) -> OperatorConfig:
    """Return the configuration in a YAML file whose keys are the fields of ``OperatorConfig``.

    Raises ConfigError in one line.
    """
    file = Path(path)
    try:
        document = read_config(file)
    except ValueError as error:
        raise Kod2ConfigError(str(error)) from error
    if document is not None and not isinstance(document, dict):
        raise Kod2ConfigError(f"{file}: {document!r}: must be a mapping")
    return config_of(document or {}, str(file))
