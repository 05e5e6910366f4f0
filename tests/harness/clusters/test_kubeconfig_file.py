"""Files that let one in."""

from mews.harness.kubeconfig_file import write_kubeconfig


def test_a_kubeconfig_is_its_owners_alone_though_others_could_read_the_one_before(tmp_path):
    file = tmp_path / "kubeconfig"
    file.write_text("old")
    file.chmod(0o644)
    write_kubeconfig(file, server={"server": "https://127.0.0.1:1"}, user={"token": "secret"})
    assert file.stat().st_mode & 0o777 == 0o600
    assert "secret" in file.read_text()
