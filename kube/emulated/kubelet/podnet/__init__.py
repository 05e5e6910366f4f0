"""A network for pods that are processes: addresses and ports of their own, and Services, on this machine's loopback.

The kernel hands over each bind(2) and connect(2) of such a pod (seccomp_unotify(2)); they are done on its socket, with
another address where the pod's own network is meant. What is sent then takes no detour.
"""
