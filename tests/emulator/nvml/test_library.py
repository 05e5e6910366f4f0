"""Where the compiled library comes from."""

import pytest

from mews.emulator.nvml import library


def test_an_installation_without_a_compiler_uses_what_was_copied_into_it(tmp_path, monkeypatch):
    library.copy_products(tmp_path / "bin")
    monkeypatch.setattr(library, "_HERE", tmp_path)
    monkeypatch.setattr(library, "build", lambda *_: pytest.fail("it compiles"))
    monkeypatch.setattr(library, "cache_folder", lambda _: tmp_path / "nothing")
    library.install_copies(tmp_path / "host")
    assert library.library_path() == tmp_path / "bin" / library.LIBRARY
