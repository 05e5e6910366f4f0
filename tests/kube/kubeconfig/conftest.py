"""Certificates that kubeconfigs name."""

from __future__ import annotations

import pytest

from tests.kube.kubeconfig.documents import Identity, made_identity


@pytest.fixture(scope="session")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Identity:
    return made_identity(tmp_path_factory.mktemp("identity"), "one")
