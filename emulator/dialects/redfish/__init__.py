"""Dialect ``redfish``: the chassis as a DMTF Redfish service (contract chassis.md 4), one small file per family."""
