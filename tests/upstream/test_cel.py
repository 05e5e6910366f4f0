"""The recorded answers of Kubernetes' CEL (``tests/kube/cel/recorded``) are those of its own code."""

import pytest

from tests.kube.cel.recorded import expressions, recorded
from tests.upstream.building import NotBuiltError
from tests.upstream.cel.judge import answers_of

pytestmark = pytest.mark.upstream


def test_the_recorded_answers_are_what_kubernetes_makes_of_the_expressions():
    try:
        answers = answers_of(expressions())
    except NotBuiltError as error:
        pytest.skip(str(error))
    assert {text: found for text, found in recorded().items() if answers.get(text, found) != found} == {}
    assert len(answers) > 0.99 * len(recorded())
