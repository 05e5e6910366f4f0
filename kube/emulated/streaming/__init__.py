"""The protocols by which commands, terminals and ports of pods are reached: SPDY/3.1 and channels over WebSockets."""
