import pytest

from mews.harness.scenario.match import check_pattern, fits, match

POD = {
    "metadata": {"name": "a", "annotations": {"demand": "1"}},
    "spec": {"containers": [{"name": "x", "n": 1}, {"name": "y", "n": 2}, {"name": "z", "n": 2}]},
    "status": {"allocatable": {"gpu": "4", "cpu": "500m"}, "ready": True, "gone": None},
}


@pytest.mark.parametrize(
    "pattern",
    [
        {"metadata": {"name": "a"}},
        {"status": {"ready": True, "gone": None, "never": None}},
        {"status": {"allocatable": {"gpu": {"$ge": 4}, "cpu": {"$lt": 1}}}},
        {"status": {"allocatable": {"gpu": {"$eq": 4}, "cpu": {"$eq": "0.5"}}}},
        {"status": {"never": {"$exists": False}, "ready": {"$any": True}}},
        {"metadata": {"name": {"$in": ["b", "a"]}, "annotations": {"$len": 1}}},
        {"spec": {"containers": {"$len": {"$gt": 2}}}},
        {"spec": {"containers": {"$contains": [{"n": 2}, {"name": "y"}]}}},
        {"spec": {"containers": {"$unordered": [{"name": "z"}, {"n": 2}, {"n": 1}]}}},
        {"spec": {"containers": {"$exact": [{"name": "x"}, {"name": "y"}, {"name": "z"}]}}},
        {"spec": {"containers": {"$each": {"name": {"$regex": "^[xyz]$"}}}}},
        {"spec": {"containers": {"$count": {"of": {"n": 2}, "is": 2}}}},
        {"spec": {"containers": {"$not": {"$contains": [{"n": 3}]}}}},
        {"spec": {"containers": {"$all": [{"$len": 3}, {"$contains": [{"n": 1}]}]}}},
    ],
)
def test_a_partial_object_matches(pattern):
    check_pattern(pattern)
    assert match(pattern, POD) is None
    assert fits(pattern, POD)


@pytest.mark.parametrize(
    ("pattern", "path", "words"),
    [
        ({"metadata": {"name": "b"}}, "metadata.name", ('"b"', '"a"')),
        ({"metadata": {"annotations": {"demand": 1}}}, "metadata.annotations.demand", ("quote it", '"1"')),
        (
            {"metadata": {"annotations": {"none": {"$any": True}}}},
            "metadata.annotations.none",
            ("something", "nothing"),
        ),
        ({"status": {"ready": 1}}, "status.ready", ("1", "true")),
        ({"status": {"ready": {"$exists": False}}}, "status.ready", ("nothing", "true")),
        ({"status": {"allocatable": {"gpu": {"$gt": 4}}}}, "status.allocatable.gpu", ("> 4", '"4"')),
        ({"spec": {"containers": {"$exact": [{"name": "x"}, {"name": "y"}]}}}, "spec.containers", ("exactly 2", "3")),
        (
            {"spec": {"containers": {"$exact": [{"name": "x"}, {"name": "z"}, {"name": "y"}]}}},
            "spec.containers[1].name",
            ('"z"', '"y"'),
        ),
        ({"spec": {"containers": {"$contains": [{"n": 1}, {"n": 1}]}}}, "spec.containers", ("an item", '"n": 1')),
        ({"spec": {"containers": {"$unordered": [{"n": 2}, {"n": 1}]}}}, "spec.containers", ("2 items", "3")),
        ({"spec": {"containers": {"$each": {"n": 2}}}}, "spec.containers[0].n", ("2", "1")),
        ({"spec": {"containers": {"$count": {"of": {"n": 2}, "is": 1}}}}, "spec.containers", ("1 items like", "2")),
        ({"spec": {"containers": {"$len": 2}}}, "spec.containers", ("length 2", "3")),
        ({"metadata": {"name": {"$regex": "^b"}}}, "metadata.name", ("/^b/", '"a"')),
        ({"metadata": {"name": {"$not": "a"}}}, "metadata.name", ('not "a"', '"a"')),
        ({"metadata": {"name": {"$in": ["b"]}}}, "metadata.name", ("one of", '"a"')),
        ({"spec": {"containers": {"x": 1}}}, "spec.containers", ('"x"', "name")),
    ],
)
def test_a_mismatch_names_the_place_what_was_expected_and_what_is(pattern, path, words):
    wrong = match(pattern, POD)
    assert wrong is not None
    assert wrong.path == path
    assert words[0] in wrong.expected
    assert words[1] in wrong.actual
    assert not fits(pattern, POD)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ({"a": {"b": [1]}}, "at a.b: a bare list"),
        ({"a": {"$each": [1]}}, "at a: a bare list"),
        ({"a": {"$exact": 1}}, "must be a list"),
        ({"a": {"$gt": 1, "b": 2}}, "cannot be combined"),
        ({"a": {"$has": 1}}, "unknown operator; allowed: $exact"),
        ({"a": {"$regex": "("}}, "is not a regular expression"),
        ({"a": {"$regex": 5}}, "must be a regular expression"),
        ({"a": {"$exists": "yes"}}, "must be true or false"),
        ({"a": {"$count": {"of": 1}}}, "must have the keys of and is"),
    ],
)
def test_what_is_no_pattern_is_refused(pattern, words):
    with pytest.raises(ValueError) as raised:
        check_pattern(pattern)
    assert words in str(raised.value)
