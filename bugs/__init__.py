"""Public bugs of device plugins, schedulers, operators and kubelets: a folder each, for `mews reproduce`."""
