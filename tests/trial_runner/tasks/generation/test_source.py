import pytest

from trial_runner.errors import TaskError
from trial_runner.tasks import Decoding, Grouping, QuestionColumns, TaskSource, TextColumns, TextTaskSource
from trial_runner.tasks.data.linearise import linearise

COLUMNS = TextColumns(source="en", target="de")
VALID = {
    "kind": "folder",
    "name": "data/multi30k",
    "task_kind": "translation",
    "columns": COLUMNS,
    "decoding": Decoding(max_new_tokens=20),
    "metric": "bleu",
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "embedded"}, "a translation task must come from a folder or the hub"),
        ({"task_kind": "paraphrasing"}, "must be one of summarisation, translation, .* got 'paraphrasing'"),
        ({"columns": QuestionColumns()}, "columns of a translation task must be TextColumns"),
        ({"task_kind": "question_answering", "metric": "token_f1"}, "must be QuestionColumns"),
        ({"metric": "bleue"}, r"one of bleu, chrf, ter, loss, perplexity; got 'bleue'\. Did you mean 'bleu'\?"),
        ({"metric": "rouge1"}, "metric of a translation task must be one of bleu, .* got 'rouge1'"),
        ({"metrics": ("chrf", "accuracy")}, "got 'accuracy'"),
        ({"metrics": ("chrf",)}, "metrics must contain the metric 'bleu'; got chrf"),
        ({"max_tokens": 7}, "max_tokens must be at least 8; got 7"),
        ({"max_target_tokens": 3}, "max_target_tokens must be at least 4; got 3"),
        ({"early_metric": "bleu"}, "early_metric must be loss or metric; got 'bleu'"),
        ({"label_smoothing": 1.0}, r"label_smoothing must be in \[0, 1\); got 1.0"),
        ({"label_smoothing": float("nan")}, "label_smoothing"),
        ({"splits": {"dev": "x"}}, "among train, validation, test; got 'dev'"),
        ({"splits": {"test": {"Matched Set": "x"}}}, "named with a-z, 0-9 and '_'; got 'Matched Set'"),
        ({"validation_examples": 0}, "at least 1; got 0"),
    ],
)
def test_a_value_that_cannot_be_is_refused(changes, message):
    with pytest.raises(TaskError, match=message):
        TextTaskSource(**(VALID | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"beams": 0}, "beams must be at least 1; got 0"),
        ({"max_new_tokens": 0}, "max_new_tokens must be at least 1; got 0"),
        ({"min_new_tokens": 21}, r"from 0 to max_new_tokens \(20\); got 21"),
        ({"min_new_tokens": -1}, "min_new_tokens"),
        ({"length_penalty": float("nan")}, "length_penalty must be a finite number"),
        ({"no_repeat_ngram": -1}, "no_repeat_ngram must be at least 0; got -1"),
    ],
)
def test_a_way_of_generating_that_cannot_be_is_refused(changes, message):
    with pytest.raises(TaskError, match=message):
        Decoding(**({"max_new_tokens": 20} | changes))


def test_all_metrics_of_the_kind_are_measured_unless_some_are_named():
    assert TextTaskSource(**VALID).measured == ("bleu", "chrf", "ter", "loss", "perplexity")


def test_before_the_last_step_a_text_is_scored_by_its_loss_unless_the_metric_is_asked_for():
    assert TextTaskSource(**VALID).early_metric == "loss"
    assert TextTaskSource(**VALID, metrics=("bleu", "ter")).measured == ("bleu", "ter")


def test_a_group_is_what_its_column_says():
    each_value = Grouping(column="set")
    assert [each_value.name_of(value) for value in ("Un-seen!", True, 3, None, "")] == ["un_seen", "true", "3", "", ""]
    named = Grouping(column="set", values={"seen": ("true", "food"), "unseen": ("false",)})
    assert [named.name_of(value) for value in (True, "food", False, "else", None)] == ["seen", "seen", "unseen", "", ""]
    with pytest.raises(TaskError, match="must be in one group"):
        Grouping(column="set", values={"a": ("x",), "b": ("x",)})
    with pytest.raises(TaskError, match="named with a-z"):
        TaskSource(kind="folder", name="x", group=Grouping(column="set", values={"A": ("x",)}))


@pytest.mark.parametrize(
    "triples",
    [
        ["Aarhus | leaderName | Jacob_Bundsgaard", "Aarhus | country | Denmark"],
        [["Aarhus", "leaderName", "Jacob_Bundsgaard"], ["Aarhus", "country", "Denmark"]],
        [["Aarhus | leaderName | Jacob_Bundsgaard", "Aarhus | country | Denmark"]],
        [
            {"subject": "Aarhus", "property": "leaderName", "object": "Jacob_Bundsgaard"},
            {"subject": "Aarhus", "predicate": "country", "object": "Denmark"},
        ],
    ],
)
def test_triples_become_a_line_of_text_whatever_their_form(triples):
    assert linearise(triples) == "| Aarhus : leaderName : Jacob Bundsgaard | Aarhus : country : Denmark"


def test_three_triples_are_not_taken_for_the_parts_of_one():
    assert linearise(["a | b | c", "d | e | f", "g | h | i"]) == "| a : b : c | d : e : f | g : h : i"
    assert linearise(["a", "b", "c"]) == "| a : b : c"


@pytest.mark.parametrize("value", ["name : Clowns | food : Chinese", [], None, ["a | b"], [3], [{"subject": "a"}]])
def test_what_is_no_list_of_triples_stays_as_it_is(value):
    assert linearise(value) == value
