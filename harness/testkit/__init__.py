"""What the pytest fixtures hand out. Imported only when a fixture is used."""
