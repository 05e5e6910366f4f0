"""Bindings, templates, includes, repetition, outputs, catch: what they stand for, and what is refused of them."""

import pytest

from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.language.names import escaped, put_in, settled
from mews.harness.scenario.loader import load_scenario

HEAD = "apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: x}\nhardware: demo\nstack: {kubecomp: null}\n"
FILES = {
    "a.yaml": "- include: b.yaml\n",
    "b.yaml": "- include: a.yaml\n",
    "list.yaml": "- sleep: 1s\n- name: ${who}\n  slep: 2s\n",
    "good.yaml": "- name: ${who}\n  sleep: ${for}\n",
    "map.yaml": "a: 1\n",
    "broken.yaml": "a: [\n",
    "pod.yaml": "kind: Pod\nmetadata: {name: '${nam}'}\n",
    "manifest.yaml": "kind: ConfigMap\nmetadata: {name: m}\ndata: {text: 'a ${b} $${c}'}\n---\n"
    "kind: Pod\nmetadata: {nam: x}\n",
    "values.yaml": "gpus: 2\nhost: host-1\n",
}
TEMPLATE = "templates: {pod: {kind: Pod, metadata: {name: '${n}'}}}\n"
GET = "get: {kind: Pod, name: a}"


@pytest.fixture
def write(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)

    def write(text):
        path = tmp_path / "s.yaml"
        path.write_text(HEAD + text + "\n")
        return path

    return write


def played(path, *overrides):
    return Engine(RunOptions()).run(load_scenario(path, overrides))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("steps: [{sleep: '${x}'}]", "s.yaml:6: steps.0.sleep: '${x}': no such name here; names: (none); $${x} is"),
        ("bindings: {gpus: 2}\nsteps: [{sleep: '${gpu}'}]", "names: gpus (did you mean gpus?)"),
        ("bindings: [a]", "bindings: ['a']: must be a mapping of names to values"),
        ("bindings: {1a: 2}", "bindings.1a: '1a': must be a name: letters, digits"),
        ("bindings: {a: '${b}', b: 1}", "bindings.a: '${b}': no such name here; names: (none)"),
        ("bindings: {a: {b: 1}}\nsteps: [{sleep: '${a.c}'}]", "'${a.c}': there is no 'c' in it; there are b"),
        ("bindings: {a: [1]}\nsteps: [{sleep: '${a.7}'}]", "'${a.7}': there is no '7' in it; it is [1]"),
        ("bindings: {a: {b: 1}}\nsteps: [{name: 'x${a}', sleep: 1s}]", "only a text or a number fits within a text"),
        ("bindings: {a: [1]}\nobjects: {kind: Pod, metadata: {name: a}, '${a}': 1}", "is [1]: a key must be a text"),
        (
            "bindings: {a: " + "x" * 99 + ", b: '" + "${a}" * 99 + "', c: '" + "${b}" * 99 + "'}",
            "becomes too large: at most 100000 characters",
        ),
        ("bindings: {include: good.yaml}", "must be a file with a mapping, like that of bindings"),
        ("steps: [{include: a.yaml}]", "b.yaml:1: 0.include: 'a.yaml': includes itself: a.yaml -> b.yaml -> a.yaml"),
        ("steps: [{include: none.yaml}]", "steps.0.include: 'none.yaml': no such file"),
        ("steps: [{include: map.yaml}]", "must be a file with a list of steps"),
        ("steps: [{include: broken.yaml}]", "broken.yaml:2: not YAML"),
        ("steps: [{include: list.yaml, with: {who: I}}]", "list.yaml:3: 1.slep: unknown key; allowed: sleep, "),
        ("steps: [{include: list.yaml}]", "list.yaml:2: 1.name: '${who}': no such name here"),
        ("steps: [{include: 5}]", "steps.0.include: 5: must be the path of a file"),
        ("steps: [{include: ../x.yaml}]", "lies outside the scenario's folder"),
        ("steps: [{include: list.yaml, name: x}]", "unknown key next to include; allowed: include, with, forEach"),
        ("steps: [{include: list.yaml, with: 5}]", "steps.0.with: 5: must be a mapping"),
        ("steps: [{forEach: 5, sleep: 1s}]", "steps.0.forEach: 5: must name what changes"),
        ("steps: [{forEach: {}, sleep: 1s}]", "steps.0.forEach: {}: must name what changes"),
        ("steps: [{forEach: {n: []}, sleep: 1s}]", "forEach.n: []: is empty"),
        ("steps: [{forEach: {n: {from: 3, to: 1}}, sleep: 1s}]", "the first must not be above the last"),
        ("steps: [{forEach: {n: {from: 1, to: 100000000}}, sleep: 1s}]", "at most 1000 rounds, these are 100000000"),
        ("steps: [{forEach: {n: {from: a, to: 2}}, sleep: 1s}]", "from and to must be whole numbers"),
        ("steps: [{forEach: {n: text}, sleep: 1s}]", "must be a list, or {from: 1, to: 3} with both ends"),
        ("steps: [{forEach: {a b: [1]}, sleep: 1s}]", "'a b': must be a name"),
        ("steps: [{forEach: {n: [1, 2]}, sleep: 'x${n}'}]", "steps.0.sleep (n=1): 'x1': must be a span of time"),
        ("steps: [{forEach: {n: [1, 2]}}]", "a step has exactly one action (none given)"),
        ("steps: [{forEach: {n: [1]}, steps: []}]", "steps.0.steps: []: must be a list of steps"),
        ("steps: [{steps: [{sleep: 1s}], timeout: 5}]", "unknown key next to steps; allowed: steps, bindings, forEach"),
        ("steps: [{apply: {template: x}}]", "steps.0.apply.template: 'x': no such template; templates: (none)"),
        (TEMPLATE + "steps: [{apply: {template: pdo}}]", "templates: pod (did you mean pod?)"),
        (TEMPLATE + "steps: [{apply: {template: pod}}]", "s.yaml:6: templates.pod.metadata.name: '${n}': no such name"),
        (TEMPLATE + "objects: {template: pod, with: {m: 1, n: a}}", "the template does not use it; it takes n"),
        (
            TEMPLATE + "objects: {template: pod, with: {n: a}, forEach: {k: [1]}}",
            "objects.forEach.k: 'k': the template",
        ),
        (TEMPLATE + "objects: {template: pod, with: {n: a}, as: b}", "unknown key next to template"),
        (
            TEMPLATE + "objects: {template: pod, with: {n: 5}}",
            "templates.pod: {'kind': 'Pod', 'metadata': {'name': 5}}",
        ),
        ("templates: {pod: 5}", "must be a Kubernetes object with a kind"),
        ("templates: [5]", "must be a mapping of names to objects"),
        ("steps: [{apply: {include: pod.yaml}}]", "pod.yaml:2: metadata.name: '${nam}': no such name here"),
        (
            "steps: [{apply: {file: manifest.yaml}}]",
            "manifest.yaml:5: (top): {'kind': 'Pod', 'metadata': {'nam': 'x'}}",
        ),
        ("steps: [{sleep: 1s, outputs: {a: .b}}]", "outputs: sleep has no result; there is one of apply, create, get"),
        (f"steps: [{{{GET}, outputs: {{a: ''}}}}]", "steps.0.outputs.a: '': must be a JSONPath"),
        (f"steps: [{{{GET}, outputs: {{a: '.b['}}}}]", "cannot read the JSONPath from character 2"),
        (f"steps: [{{{GET}, outputs: {{a: {{path: .b, type: text}}}}}}]", "outputs.a.type: 'text'"),
        (f"steps: [{{{GET}, outputs: {{1: .b}}}}]", "outputs.1: '1': must be a name"),
        (f"bindings: {{a: 1}}\nsteps: [{{{GET}, outputs: {{a: .b}}}}]", "outputs.a: 'a': is already a binding"),
        (f"steps: [{{sleep: '${{a}}'}}, {{{GET}, outputs: {{a: .b}}}}]", "steps.0.sleep: '${a}': no such name here"),
        (f"steps: [{{{GET}, outputs: {{a: .b}}}}, {{sleep: '${{a}}'}}]", "an output is a text unless its type says"),
        (
            f"steps: [{{{GET}, outputs: {{a: .b}}}}, {{kill: '${{a.c}}'}}]",
            "steps.1.kill: '${a.c}': the output a has no",
        ),
        (
            f"steps: [{{{GET}, outputs: {{a: .b}}}}, {{forEach: {{n: '${{a}}'}}, sleep: 1}}]",
            "must be known when the file",
        ),
        ("steps: [{get: {kind: Pood, name: a}}]", "steps.0.get.kind: 'Pood': neither built in nor defined"),
        ("steps: [{get: {kind: Pod, name: a, labels: a=b}}]", "name and labels: only one of the two"),
        ("steps: [{get: {kind: Pod, labels: a in b}}]", "steps.0.get.labels: 'a in b': unable to parse requirement"),
        ("steps: [{wait: {settled: {}}, outputs: {a: .b}}]", "wait must be of one check, for an object, pod or node"),
        ("steps: [{script: {}}]", "must have either content: TEXT for sh, or command"),
        ("steps: [{script: {content: a, command: [b]}}]", "must have either content: TEXT for sh, or command"),
        ("steps: [{script: {command: ls}}]", "steps.0.script.command: 'ls': must be a list"),
        ("steps: [{logs: {pod: a, tail: 0}}]", "steps.0.logs.tail: 0"),
        ("catch: [{frob: 1}]", "catch.0.frob: unknown key"),
        ("finally: [{kill: defualt-scheduler}]", "(did you mean default-scheduler?)"),
        ("stack: {include: map.yaml}", "map.yaml:1: a: unknown key"),
    ],
)
def test_what_cannot_be_is_one_line_with_file_place_and_what_is_allowed(text, says, write):
    head = HEAD.replace("stack: {kubecomp: null}\n", "") if text.startswith("stack") else HEAD
    path = write(text)
    path.write_text(head + text + "\n")
    with pytest.raises(ScenarioError) as refused:
        load_scenario(path)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("bindings.gpu=3", "no such binding in {path}; bindings: gpus, host, half (did you mean gpus?)"),
        ("bindings.gpus=many", "'many': must be a whole number, as 2 in {path}"),
        ("bindings.gpus=true", "True: must be a whole number, as 2 in {path}"),
        ("bindings.host=5", "5: must be a text, as 'host-1' in {path}"),
        ("bindings.half=[1]", "[1]: must be a number, as 0.5 in {path}"),
    ],
)
def test_an_override_is_of_a_binding_that_is_there_and_keeps_its_type(override, says, write):
    path = write("bindings: {include: values.yaml, half: 0.5}\nsteps: [{sleep: '${half}'}]")
    with pytest.raises(ScenarioError) as refused:
        load_scenario(path, [override])
    assert str(refused.value) == f"--set {override}: bindings.{override.split('.')[1].split('=')[0]}: " + says.format(
        path=path
    )


def test_a_binding_keeps_its_type_alone_and_is_text_within_a_text(write):
    path = write("bindings: {include: values.yaml, half: 0.5}\nsteps: [{name: 'for ${half} s', sleep: '${half}'}]")
    [step] = load_scenario(path).steps
    assert (step.name, step.sleep) == ("for 0.5 s", 0.5)
    [step] = load_scenario(path, ["bindings.half=3"]).steps
    assert (step.name, step.sleep) == ("for 3 s", 3.0)


def test_steps_are_repeated_for_every_combination_the_last_name_the_fastest(write):
    path = write("steps: [{forEach: {a: [x, y], b: {from: 1, to: 2}}, steps: [{name: '${a}${b}', sleep: 1s}]}]")
    assert [step.name for step in load_scenario(path).steps] == ["x1", "x2", "y1", "y2"]


def test_an_included_file_is_read_with_other_values_each_time(write):
    path = write("steps: [{include: good.yaml, with: {who: 'I${n}', for: '${n}'}, forEach: {n: [1, 2]}}]")
    scenario = load_scenario(path)
    assert [(step.name, step.sleep) for step in scenario.steps] == [("I1", 1.0), ("I2", 2.0)]
    assert [file.name for file in scenario.included] == ["good.yaml"]


def test_a_manifest_is_taken_as_it_is_and_two_dollars_stand_for_one(write, tmp_path):
    (tmp_path / "manifest.yaml").write_text(FILES["manifest.yaml"].partition("---")[0])
    path = write("objects: [{file: manifest.yaml}, {kind: ConfigMap, metadata: {name: n}, data: {x: 'a $${b}'}}]")
    first, second = load_scenario(path).objects
    assert first["data"] == {"text": "a ${b} $${c}"}
    assert second["data"] == {"x": "a ${b}"}


@pytest.mark.parametrize("text", ["${a}", "$${a}", "a $$${b.c} ${", "${A:-x}", "$5", {"${k}": ["${v}"]}])
def test_what_is_escaped_comes_back(text):
    assert settled(put_in(escaped(text), {"a": 1}, {}), {}) == text


POD = "{kind: Pod, metadata: {name: a}, spec: {containers: [{name: main, image: mews/gpu-hold}]}}"


def test_outputs_of_a_step_are_values_of_later_ones(write):
    run = played(
        write(f"""steps:
  - create: {POD}
    outputs: {{uid: .metadata.uid, all: {{path: ., type: object}}}}
  - wait: {{pod: {{name: a, phase: Running}}}}
    outputs:
      node: "{{.spec.nodeName}}"
      restarts: {{path: ".status.containerStatuses[0].restartCount", type: integer}}
  - apply: {{kind: ConfigMap, metadata: {{name: m}}, data: {{of: "${{all.metadata.name}}/${{uid}}"}}}}
  - exec: {{pod: a, command: [printenv, NVIDIA_VISIBLE_DEVICES], exitCode: 1}}
    outputs: {{code: {{path: .exitCode, type: integer}}}}
  - assert:
      - node: {{host: "${{node}}", ready: true}}
      - count: {{kind: Pod, is: "${{code}}"}}
      - pod: {{name: a, restarts: "${{restarts}}"}}
      - object: {{kind: ConfigMap, metadata: {{name: m}}, data: {{of: {{$regex: "a/.+"}}}}}}
""")
    )
    assert (run.result.verdict, run.result.reason) == ("passed", "")


@pytest.mark.parametrize(
    ("outputs", "reason"),
    [
        ("{a: .spec.none}", "expected output a at .spec.none; seen: there is nothing at that path"),
        ("{a: .spec}", "expected output a at .spec to be a string; seen: {"),
        ("{a: {path: .metadata.name, type: integer}}", "to be a integer; seen: 'a'"),
    ],
)
def test_an_output_that_is_not_there_fails_its_step(outputs, reason, write):
    result = played(write(f"steps: [{{create: {POD}, outputs: {outputs}}}]")).result
    assert result.verdict == "failed"
    assert reason in result.reason


def test_an_output_that_does_not_fit_is_an_error_and_one_that_was_not_given_fails(write):
    get = "{get: {kind: Node, name: host-1}, outputs: {n: .metadata.name}}"
    run = played(write(f"steps: [{get}, {{kill: 'kubelet/${{n}}x'}}]"))
    assert run.result.verdict == "error"
    assert "component 'kubelet/host-1x': must be one of" in run.result.reason
    run = played(write(f"steps: [{{assert: {{pod: {{name: b}}}}}}, {get}]\nfinally: [{{kill: 'kubelet/${{n}}'}}]"))
    assert "step 3 kill: awaited: ${n} to be known" not in run.result.reason
    assert "no earlier step sets that output" in run.result.report


def test_what_catch_gathers_is_in_the_report_and_only_once_it_has_failed(write, tmp_path):
    path = write(f"""bindings: {{phase: Succeeded}}
steps:
  - apply: {POD}
  - wait: {{pod: {{name: a, phase: Running}}}}
  - assert: {{pod: {{name: a, phase: "${{phase}}"}}}}
catch:
  - name: the pod
    get: {{kind: Pod, name: a}}
  - logs: {{pod: none}}
  - exec: {{pod: a, command: [printenv, HOSTNAME]}}
finally:
  - delete: {{kind: Pod, name: a}}
""")
    run = Engine(RunOptions(), artefacts=tmp_path / "kept").run(load_scenario(path))
    assert run.result.verdict == "failed"
    assert run.result.reason.startswith("step 3 assert: expected pod/default/a")
    assert list(run.result.evidence) == ["catch-4-the pod", "catch-6-exec"]
    assert "nodeName: host-" in run.result.evidence["catch-4-the pod"]
    assert "step 4 get (the pod):" in run.result.report
    assert (run.result.artefacts / "evidence" / "catch-6-exec.txt").read_text() == run.result.evidence["catch-6-exec"]
    assert [line.fields["do"] for line in run.lines if line.layer == "step" and line.event == "begun"] == [
        *("apply", "wait", "assert", "get", "logs", "exec", "delete"),
    ]
    good = played(path, "bindings.phase=Running")
    assert (good.result.verdict, good.result.evidence) == ("passed", {})
    assert "get" not in [line.fields.get("do") for line in good.lines]


def test_a_script_needs_wall_clock_time_and_that_is_why_it_is_skipped(write):
    result = played(write("steps: [{script: 'true'}]")).result
    assert result.verdict == "skipped"
    assert result.reason.startswith("steps.0.script: 'true': runs beside the cluster, in wall-clock time (--time wall)")


@pytest.mark.wall
def test_a_script_is_a_client_of_the_cluster(write):
    path = write("""steps:
  - script: |
      test -r "$KUBECONFIG" && test -r "$MEWS_READY" && basename "$PWD"/s.yaml
    outputs: {file: .stdout}
  - script: {command: [sh, -c, 'echo "$WHAT"; exit 3'], env: {WHAT: "${file}"}, exitCode: 3, stdout: "s.yaml\\n"}
  - script: {content: "echo no >&2; exit 1"}
catch:
  - script: "echo seen"
""")
    result = Engine(RunOptions(time="wall", speed=20)).run(load_scenario(path)).result
    assert result.verdict == "failed"
    assert result.reason.startswith("step 3 script: expected script 'echo no >&2; exit 1' to end with")
    assert result.evidence == {"catch-4-script": "seen\n"}
