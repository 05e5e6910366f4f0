"""What a file may say under ``stack.kod2``: the settings of the operator."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from mews.kube.system.options import model_of
from mews.systems.kod2.config import AMOUNT, DOMAIN, OperatorConfig

LIMIT: Any = Annotated[float, Field(strict=True, ge=0)]
"""Seconds from 0 on; ``.inf`` for never."""

Kod2Options = model_of(
    OperatorConfig,
    "Kod2Options",
    "The operator of TFJobs; ``scheduling: tf-operator`` is a baseline, ``mode: literal`` the paper's pseudocode.",
    kinds={
        "scheduling": Literal["kod2", "tf-operator"],
        "mode": Literal["corrected", "literal"],
        "starve_limit_s": LIMIT,
        "cooldown_s": LIMIT,
        "settle_s": LIMIT,
        "start_limit_s": LIMIT,
        "default_cpu": Annotated[str, Field(strict=True, pattern=AMOUNT)],
        "default_memory": Annotated[str, Field(strict=True, pattern=AMOUNT)],
        "cluster_domain": Annotated[str, Field(strict=True, pattern=DOMAIN)],
        "clean_pod_policy": Literal["All", "Running", "None"],
    },
    words={
        "scheduling": "kod2: the elastic scheduler; tf-operator: all pods of a job together, on any nodes",
        "mode": "corrected, or literal: the paper's printed pseudocode",
        "starve_limit_s": "a job that waits for longer is starved",
        "cooldown_s": "a job that was scaled is left alone for this long",
        "backfill": "others may pass a head of the queue that cannot be placed",
        "preemption": "workers are taken from running jobs for a starved one",
        "scale_out": "running jobs get workers where there is room",
        "affinity": "tasks of one job are kept together",
        "tick_s": "a pass at least that often",
        "settle_s": "for this long the room of workers that ended counts as held, unless their job has ended",
        "start_limit_s": "a placed job that does not run by then gives its room back and waits behind all others",
        "pooled_resource": "pods that ask for it are left to pool_scheduler",
        "pool_scheduler": "the schedulerName of the pool's scheduler",
        "pool_namespace": "where the pools are published that such pods are counted against",
        "clean_pod_policy": "of jobs that name none",
        "default_cpu": "what each task asks for of a job that asks for no processors anywhere; empty: nothing",
        "default_memory": "what each task asks for of a job that asks for no memory anywhere; empty: nothing",
        "cluster_domain": "what the names in TF_CONFIG end with",
    },
)
