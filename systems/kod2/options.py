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
)
