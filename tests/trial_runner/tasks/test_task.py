import pytest
from pydantic import ValidationError

from trial_runner.errors import TaskError
from trial_runner.tasks import TASK_KINDS, Decoding, Grouping, Task, check_task
from trial_runner.tasks.data.linearise import linearise

CLASSES = {"folder": "data/sst2", "text": "sentence", "label": "label"}
COLUMNS = {"folder": "data/multi30k", "source": "en", "target": "de"}
TEXTS = {"kind": "translation", **COLUMNS, "decoding": {"max_new_tokens": 20}, "metric": "bleu"}


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"max_tokens": 7}, "max_tokens"),
        ({"max_target_tokens": 3}, "max_target_tokens"),
        ({"label_smoothing": 1.0}, "label_smoothing"),
        ({"label_smoothing": float("nan")}, "label_smoothing"),
        ({"splits": {"dev": "x"}}, "splits"),
        ({"examples": {"validation": 0}}, "examples"),
        ({"examples": {"train": True}}, "examples"),
        ({"text": []}, "text"),
        ({"text": ["a", "b", "c"]}, "text"),
        ({"labels": ["a", "a"]}, "labels"),
        ({"labels": ["a"]}, "labels"),
        ({"decoding": {"beams": 0}}, "decoding"),
        ({"decoding": {"max_new_tokens": 0}}, "decoding"),
        ({"decoding": {"min_new_tokens": -1}}, "decoding"),
        ({"decoding": {"length_penalty": float("nan")}}, "decoding"),
        ({"decoding": {"no_repeat_ngram": -1}}, "decoding"),
        ({"paraphrase": True}, "paraphrase"),
    ],
)
def test_a_value_that_cannot_be_is_refused_where_it_stands(changes, key):
    with pytest.raises(ValidationError) as caught:
        Task(**(TEXTS | changes))
    (problem,) = caught.value.errors()
    assert problem["loc"][0] == key


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (TEXTS | {"kind": "translatoin"}, "no kind of task 'translatoin'; known: .* Did you mean 'translation'"),
        (TEXTS | {"folder": None, "name": "docstrings"}, "a translation task must come from a folder or the hub"),
        (TEXTS | {"metrics": ["chrf", "accuracy"]}, "got 'accuracy'"),
        (TEXTS | {"metrics": ["chrf"]}, "metrics must contain the metric 'bleu'; got chrf"),
        (TEXTS | {"decoding": {"min_new_tokens": 65}}, r"from 0 to max_new_tokens \(64\); got 65"),
        (TEXTS | {"splits": {"test": {"Matched Set": "x"}}}, "named with a-z, 0-9 and '_'; got 'Matched Set'"),
        (CLASSES | {"folder": None, "name": "docstring"}, "known: docstrings. Did you mean 'docstrings'"),
        (CLASSES | {"text": "label"}, "beside its label column"),
        (CLASSES | {"text": ["a", "a"]}, "one or two text columns"),
        (CLASSES | {"metric": "mcc"}, "task must be one of accuracy, f1, matthews; got 'mcc'"),
        (CLASSES | {"label": None}, "must name the columns text and label, because it is read from a folder"),
    ],
)
def test_a_task_that_does_not_fit_its_kind_is_refused(task, message):
    with pytest.raises(TaskError, match=message):
        check_task(Task(**task))


def test_the_title_is_short_and_the_same_wherever_the_folder_is():
    assert Task(**CLASSES).title == "sst2"
    assert Task(**(CLASSES | {"folder": "/elsewhere/sst2/"})).title == "sst2"
    assert Task(hub={"name": "nyu-mll/glue", "configuration": "sst2"}).title == "nyu-mll/glue/sst2"
    assert Task(name="docstrings").title == "docstrings"


def test_all_metrics_of_the_kind_are_measured_unless_some_are_named():
    assert TASK_KINDS["translation"].metrics == ("bleu", "chrf", "ter", "loss", "perplexity")


def test_a_text_is_as_long_as_a_target_unless_its_length_is_given():
    assert Task(**TEXTS).most_new_tokens == 20
    assert Task(**(TEXTS | {"decoding": Decoding(), "max_target_tokens": 9})).most_new_tokens == 9


def test_group_follows_from_its_column():
    each_value = Grouping(column="set")
    assert [each_value.name_of(value) for value in ("Un-seen!", True, 3, None, "")] == ["un_seen", "true", "3", "", ""]
    named = Grouping(column="set", values={"seen": ("true", "food"), "unseen": ("false",)})
    assert [named.name_of(value) for value in (True, "food", False, "else", None)] == ["seen", "seen", "unseen", "", ""]
    with pytest.raises(ValidationError, match="must be in one group"):
        Grouping(column="set", values={"a": ("x",), "b": ("x",)})
    with pytest.raises(ValidationError, match="named with a-z"):
        Grouping(column="set", values={"A": ("x",)})


BARS = ["Aarhus | leader | Jacob_B", "Aarhus | country | Denmark"]
MAPPINGS = [
    {"subject": "Aarhus", "property": "leader", "object": "Jacob_B"},
    {"subject": "Aarhus", "predicate": "country", "object": "Denmark"},
]


@pytest.mark.parametrize("triples", [BARS, [one.split(" | ") for one in BARS], [BARS], MAPPINGS])
def test_triples_of_every_form_become_one_line_of_text(triples):
    assert linearise(triples) == "| Aarhus : leader : Jacob B | Aarhus : country : Denmark"


def test_three_triples_are_not_taken_for_the_parts_of_one():
    assert linearise(["a | b | c", "d | e | f", "g | h | i"]) == "| a : b : c | d : e : f | g : h : i"
    assert linearise(["a", "b", "c"]) == "| a : b : c"


@pytest.mark.parametrize("value", ["name : Clowns | food : Chinese", [], None, ["a | b"], [3], [{"subject": "a"}]])
def test_text_other_than_triples_is_unchanged(value):
    assert linearise(value) == value
