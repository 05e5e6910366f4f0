"""The few controllers that an embedded cluster needs, over KubeApi only."""
