"""What is wrong with a wish for a release of Kubernetes.

ReleaseError(ValueError)
    an unknown release, gate or API version, or a setting that upstream refuses; its text names what is allowed
"""

from __future__ import annotations


class ReleaseError(ValueError):
    """A release, a feature gate or an API version that there is not, or a setting that is refused; one line."""
