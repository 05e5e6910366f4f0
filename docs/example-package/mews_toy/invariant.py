"""An invariant: while the toy system runs, no pod goes without its mark for long."""

from mews.kube.api.objects import annotations_of, is_terminal
from mews.kube.system.invariant import Breach, Invariant

MARK, BOUND_S = "toy.dev/seen", 60.0


class EveryPodIsMarked(Invariant):
    """Made anew for each run, as it remembers since when a pod has been without."""

    number = 100
    name = "every pod is marked"

    def __init__(self):
        self._marks_are_made = False
        self._since = {}

    def on_objects(self, t, objects, state):
        """Called after each change of a pod or a node."""
        bare = [key for key, pod in objects.pods.items() if MARK not in annotations_of(pod) and not is_terminal(pod)]
        self._marks_are_made = self._marks_are_made or len(bare) < len(objects.pods)
        self._since = {key: self._since.get(key, t) for key in bare}
        for key, since in self._since.items():
            if self._marks_are_made and t - since > BOUND_S:
                yield Breach((key,), f"pod {key} has no mark since {since:.0f} s (bound {BOUND_S:g} s)", None)
