"""Whether what clients were answered at the same time could have been done one after the other. Pure."""
