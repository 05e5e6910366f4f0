"""The horizontal-pod-autoscaler controller: utilization to replicas, behaviour, and the loop that acts on both."""
