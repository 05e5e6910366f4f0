"""The embedded cluster: emulated nodes around an API server, put together in virtual or in wall-clock time."""
