"""The figures and tables of the KubeComp paper: what is run for each, and what is drawn and compared of it. Pure."""
