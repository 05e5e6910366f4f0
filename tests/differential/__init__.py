"""One list of requests and kubectl commands, put to a real control plane and to the embedded server."""
