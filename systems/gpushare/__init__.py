"""GPU Share: pods on parts of a GPU's memory, by a scheduler extender and a device plugin (contract gpushare.md)."""
