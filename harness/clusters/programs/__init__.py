"""Programs of Kubernetes that take the place of our components: how they are found and started."""
