"""The Kubernetes side: the components under test. Never imports mews.emulator or mews.harness."""
