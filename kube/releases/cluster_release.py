"""Which Kubernetes a cluster is: its release, the features that are on, the API versions that are served. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from msgspec import Struct

from mews.kube.releases.errors import ReleaseError
from mews.kube.releases.feature_gates import FeatureGates, feature_gates
from mews.kube.releases.release_data import DEFAULT, git_version, known_release, merged, read


class ClusterRelease(Struct, frozen=True):
    """``runtime`` says of API versions (``resource.k8s.io/v1beta2``) whether they are served, where that is not the
    release's default."""

    gates: FeatureGates = FeatureGates()
    runtime: Mapping[str, bool] = {}

    @property
    def name(self) -> str:
        """``1.34``."""
        return self.gates.release

    @property
    def git_version(self) -> str:
        """``v1.34.2``."""
        return git_version(self.name)

    def serves(self, api_version: str) -> bool:
        """Return whether a group's version is served."""
        default = api_version in read(self.name, "release.json")["served"]
        return self.runtime.get(api_version, default)

    @property
    def is_default(self) -> bool:
        """Whether nothing differs from a cluster that says nothing."""
        return self == STANDARD


STANDARD = ClusterRelease()


def cluster_release(
    name: str = DEFAULT,
    gates: Mapping[str, bool] = MappingProxyType({}),
    runtime: Mapping[str, bool] = MappingProxyType({}),
) -> ClusterRelease:
    """Return the release of that name, with these feature gates and API versions (``GROUP/VERSION``) on or off.

    Raises ReleaseError, one line with what is allowed.
    """
    return ClusterRelease(feature_gates(gates, known_release(name)), _runtime(name, runtime))


def _runtime(name: str, given: Mapping[str, bool]) -> dict[str, bool]:
    offered, default = offered_versions(name), read(name, "release.json")["served"]
    for api_version, served in given.items():
        if api_version in default:
            if not served:
                raise ReleaseError(f"{api_version}=false: served by default, and always required")
        elif api_version not in offered:
            raise ReleaseError(
                f"{api_version}: no API version that can be switched on in Kubernetes {name}: {', '.join(offered)}"
            )
    return dict(given)


@cache
def offered_versions(name: str) -> tuple[str, ...]:
    """Return the API versions of a release that are not served by default and can be switched on."""
    default = read(name, "release.json")["served"]
    return tuple(sorted(version for version in merged(name, "kinds.json") if version not in default))
