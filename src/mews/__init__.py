"""Mews: a fake composable GPU pool plugged into a Kubernetes cluster, and the harness that judges what happens.

The packages live in the top-level folders of the repository and are linked here:
``mews.emulator`` (fake hardware), ``mews.kube`` (the components under test), ``mews.harness`` (drives and judges).
"""

__version__ = "0.1.0"
