"""Public bugs of device plugins, schedulers, operators, kubelets and chassis: a folder each, data for `mews reproduce`."""
