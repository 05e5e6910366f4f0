"""What systems have applied in a real cluster before their components run (``System.objects``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mews.harness.clusters.real.rewriting import Fitting
from mews.harness.clusters.real.rollout import Rollout
from mews.harness.errors import RequirementError
from mews.harness.manifests.foreign import first_objects
from mews.harness.manifests.spec import StackSpec
from mews.harness.manifests.systems import kinds
from mews.harness.scenario.kinds import complete, resource_of
from mews.kube.api.errors import ApiError
from mews.kube.api.objects import Object, name_of
from mews.kube.api.resources import NAMESPACES, Resource
from mews.kube.client.port import KubeApi, Patch
from mews.kube.system.kinds import kind_established

Made = Callable[[Resource, str, str | None], None]


async def make_first_objects(kube: KubeApi, rollout: Rollout, fit: Fitting, spec: StackSpec, made: Made) -> None:
    """Apply them all, fitted to the cluster's nodes, and the systems' kinds before them; ``made`` hears of each that
    goes with the scenario. Namespaces stay: one that ends takes nothing new.

    Raises RequirementError where the cluster does not let us.
    """
    given = first_objects(spec)
    if given:
        definitions = [kind for each in spec.systems if each.components for kind in kinds(each)]
        await rollout.apply(definitions, besides=True)
        for kind in definitions:
            await kind_established(kube, name_of(kind))
    await _apply(kube, fit, given, made)


async def _apply(kube: KubeApi, fit: Fitting, objects: Sequence[Object], made: Made) -> None:
    for given in objects:
        kind, name = given["kind"], name_of(given)
        try:
            resource = await resource_of(kube, kind, given.get("apiVersion", ""))
            obj = fit(complete(given, resource))
            namespace = obj["metadata"].get("namespace")
            await kube.patch(
                resource, name, obj, kind=Patch.APPLY, namespace=namespace, field_manager="mews", force=True
            )
        except ApiError as error:
            raise RequirementError(f"{kind} {name} cannot be applied: {error}") from error
        if resource != NAMESPACES:
            made(resource, name, namespace)
