"""The steps that the tables of the ways to run declare.

Written out and not read off the model: a step that is new tomorrow is honoured by a way to run once it stands here.
"""

from mews.harness.scenario.accounts.keys import REGISTERED

OBJECTS = ("apply.**", "create.**", "delete.**", "evict.**", "patch.**", "get.**", "logs.**", "exec.**")
CHECKS = ("wait.**", "assert.**", "hold.**")
HARDWARE = ("chassis.**", "fault.**", "host.**", "telemetry.**")
COMPONENTS = ("kill.**", "start.**", "restart.**")
OF_SCENARIOS = ("workload", "script.**")
EVERY_STEP = (*OBJECTS, *CHECKS, *HARDWARE, *COMPONENTS, "sleep", f"{REGISTERED}.**")
