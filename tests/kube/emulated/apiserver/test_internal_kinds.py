"""Objects as the internal structs of Kubernetes, as its messages show them (texts of kube-apiserver 1.34.2)."""

from __future__ import annotations

from mews.kube.emulated.types.internal_kinds import difference, internal


def test_a_struct_has_all_fields_in_the_order_of_its_type() -> None:
    given = {"nodeName": "z", "attacher": "d.x", "source": {"persistentVolumeName": "p"}}
    assert list(internal(given, "storage.VolumeAttachmentSpec").items()) == [
        ("Attacher", "d.x"),
        ("Source", {"PersistentVolumeName": "p", "InlineVolumeSpec": None}),
        ("NodeName", "z"),
    ]


def test_embedded_structs_give_their_fields_and_the_host_s_namespaces_are_in_the_security_context() -> None:
    volume = {"name": "v", "emptyDir": {}}
    spec = internal({"volumes": [volume], "hostPID": True}, "core.PodSpec")
    assert spec["Volumes"][0]["Name"] == "v"
    assert spec["Volumes"][0]["EmptyDir"] == {"Medium": "", "SizeLimit": None}
    assert spec["SecurityContext"]["HostPID"] is True
    assert "HostPID" not in spec


def test_a_difference_is_shown_with_three_lines_around_it() -> None:
    text = difference({"name": "e", "image": "x"}, {"name": "e", "image": "y"}, "core.EphemeralContainer")
    lines = ["@@ -1,6 +1,6 @@", " {", '  "Name": "e",', '- "Image": "x",', '+ "Image": "y",']
    assert text == "\n".join([*lines, '  "Command": null,', '  "Args": null,', '  "WorkingDir": "",', ""])
