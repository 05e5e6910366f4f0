"""Mews: a fake composable GPU pool plugged into a Kubernetes cluster, and the harness that judges what happens.

Four kinds of rooms: ``mews.emulator`` (fake hardware), ``mews.kube`` (what every Kubernetes component shares, and an
embedded Kubernetes), ``mews.systems`` (the software under test), ``mews.harness`` (drives and judges).
"""

from pathlib import Path as _Path

__version__ = "0.2.0"
OWNER = "falcon-mews"  # whose package this is: see falcon_mews

# A wheel has the rooms beside this file. In a checkout they are the repository's top folders, and an editable install
# finds them there: below src/mews are then only this file and what belongs to no room.
_checkout = _Path(__file__).resolve().parents[2]
if not (_Path(__file__).parent / "kube").is_dir() and (_checkout / "hatch_build.py").is_file():
    __path__.append(str(_checkout))
