"""Runtime hooks: what a CRI proxy asks an agent of its node before containers are created or changed."""
