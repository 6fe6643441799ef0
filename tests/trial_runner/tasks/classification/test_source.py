import pytest

from trial_runner.errors import TaskError
from trial_runner.tasks import TaskSource

VALID = {"kind": "folder", "name": "data/sst2", "text": ("sentence",), "label": "label"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "url"}, "must be one of embedded, folder, hub; got 'url'"),
        ({"kind": "embedded", "name": "docstring"}, "known: docstrings. Did you mean 'docstrings'"),
        ({"text": ()}, "one or two text columns"),
        ({"text": ("a", "b", "c")}, "one or two text columns"),
        ({"text": ("label",)}, "beside its label column"),
        ({"text": ("a", "a")}, "one or two text columns"),
        ({"max_tokens": 7}, "max_tokens must be at least 8; got 7"),
        ({"splits": {"dev": "validation"}}, "among train, validation, test; got 'dev'"),
        ({"train_examples": 0}, "at least 1; got 0"),
        ({"labels": ("a", "a")}, "at least two different ones"),
        ({"labels": ("a",)}, "at least two different ones"),
    ],
)
def test_a_value_that_cannot_be_is_refused(changes, message):
    with pytest.raises(TaskError, match=message):
        TaskSource(**(VALID | changes))


def test_the_title_is_short_and_the_same_wherever_the_folder_is():
    assert TaskSource(**VALID).title == "sst2"
    assert TaskSource(**(VALID | {"name": "/elsewhere/sst2/"})).title == "sst2"
    assert TaskSource(kind="hub", name="nyu-mll/glue", configuration="sst2").title == "nyu-mll/glue/sst2"
    assert TaskSource(kind="embedded", name="docstrings").title == "docstrings"
