"""EndpointSlices: where a service's pods are."""
