"""Faults between one component and the API server: decided in one pure place (``board``), for our components in process
and, through a proxy, for programs of others."""
