import math
import subprocess
import sys
import warnings

import pytest
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics import BLEU, CHRF, TER

from trial_runner.errors import TaskError
from trial_runner.tasks import (
    METRICS,
    SAME_PREDICTION,
    TASK_KINDS,
    compute,
    compute_loss,
    compute_text,
    same_prediction,
)
from trial_runner.tasks.metrics.answers import exact_match, normalise_answer, token_f1

PREDICTIONS = ["the cats sat on the mat", "a dog barked at two old men", "nothing here"]
REFERENCES = [("the cat sat on a mat", "two cats sat on the mat"), ("two old men were barked at by a dog",), ("x y",)]
SINGLE = [(each[0],) for each in REFERENCES]
NAMES = [each.name for each in METRICS.values() if each.needs_generation]


@pytest.mark.parametrize(("name", "library"), [("bleu", BLEU), ("chrf", CHRF), ("ter", TER)])
def test_corpus_metrics_are_those_of_sacrebleu(name, library):
    expected = library().corpus_score(PREDICTIONS, [[each[0] for each in REFERENCES]]).score
    assert compute_text([name], PREDICTIONS, SINGLE) == {name: expected}
    several = [[each[0] for each in REFERENCES], [REFERENCES[0][1], None, None]]
    both = compute_text([name], PREDICTIONS, REFERENCES)[name]
    assert both == library().corpus_score(PREDICTIONS, several).score
    assert both != expected


@pytest.mark.parametrize("name", ["rouge1", "rouge2", "rougeL", "rougeLsum"])
def test_rouge_is_mean_f1_against_the_best_reference(name):
    scorer = RougeScorer([name], use_stemmer=True)
    pairs = zip(PREDICTIONS, REFERENCES, strict=True)
    best = [max(scorer.score(one, text)[name].fmeasure for one in references) for text, references in pairs]
    assert compute_text([name], PREDICTIONS, REFERENCES)[name] == pytest.approx(sum(best) / 3)
    assert compute_text([name], ["two dogs"], [("two dog",)])[name] == 1


def test_answers_are_compared_without_case_punctuation_and_articles():
    assert normalise_answer(" The  U.S.A., an   Ocean\tof it ") == "usa ocean of it"
    assert exact_match("the Eiffel Tower!", ["Big Ben", "eiffel tower"]) == 1
    assert exact_match("eiffel", ["Eiffel Tower"]) == 0


def test_token_f1_is_harmonic_mean_for_the_best_reference():
    # 2 of 3 words are right, 2 of 4 were wanted; a word that occurs once is right once
    precision, recall = 2 / 3, 2 / 4
    expected = 2 * precision * recall / (precision + recall)
    assert token_f1("red red house", ["red house by night", "green"]) == pytest.approx(expected)
    # a word that is twice in both is right twice
    assert token_f1("red red house", ["red red car"]) == pytest.approx(2 / 3)
    assert token_f1("the", ["a"]) == 1  # nothing is left of either
    assert token_f1("", ["x"]) == 0
    both = ["exact_match", "token_f1"]
    assert compute_text(both, ["x", "y"], [("X.",), ("z",)]) == dict.fromkeys(both, 0.5)


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_text_is_measured_without_a_warning(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value = compute_text([name], ["", ""], [("some words",), ("and more",)])[name]
    assert value == (100 if name == "ter" else 0)


def test_groups_are_measured_on_their_own_too():
    groups = ["seen", "", "unseen"]
    measured = compute_text(["bleu", "rouge1", "loss"], PREDICTIONS, REFERENCES, groups=groups)
    assert list(measured) == ["bleu", "rouge1", "bleu_seen", "rouge1_seen", "bleu_unseen", "rouge1_unseen"]
    assert measured["bleu_seen"] == compute_text(["bleu"], PREDICTIONS[:1], REFERENCES[:1])["bleu"] != measured["bleu"]
    classes = compute(["accuracy"], [0, 1, 1], [0, 1, 0], classes=2, groups=["a", "a", "b"])
    assert classes == {"accuracy": 2 / 3, "accuracy_a": 1, "accuracy_b": 0}


def test_predictions_and_references_that_do_not_match_are_one_clear_line():
    with pytest.raises(TaskError, match=r"as many predictions as examples .* got 1 and 2\."):
        compute_text(["bleu"], ["a"], [("a",), ("b",)])
    with pytest.raises(TaskError, match="at least one; got 0 and 0"):
        compute_text(["bleu"], [], [])
    with pytest.raises(TaskError, match="every example must have a reference"):
        compute_text(["bleu"], ["a", "b"], [("a",), ()])
    with pytest.raises(TaskError, match=r"no metric 'rogue1' of texts; known: .* Did you mean 'rouge1'\?"):
        compute_text(["rogue1"], ["a"], [("a",)])


def test_perplexity_is_the_exponential_of_the_loss_and_never_fails():
    assert compute_loss(["loss", "perplexity", "bleu"], 2.0) == {"loss": 2.0, "perplexity": math.exp(2)}
    assert compute_loss(["perplexity"], 1e6) == {"perplexity": math.inf}


def test_every_kind_of_task_has_a_usual_metric_and_those_of_the_loss():
    usual = ("accuracy", "pearson", "rouge2", "bleu", "bleu", "token_f1", "rougeL")
    assert tuple(kind.metrics[0] for kind in TASK_KINDS.values()) == usual
    assert all(kind.metrics[-2:] == ("loss", "perplexity") for kind in TASK_KINDS.values() if kind.prompt is not None)


def test_the_most_frequent_prediction_is_counted():
    shares = [same_prediction(some)[SAME_PREDICTION] for some in ([2, 1, 2, 2], ["", "", "a", "b"], iter([3]))]
    assert shares == [0.75, 0.5, 1.0]


def test_tasks_load_no_library_of_metrics_before_one_is_computed():
    script = (
        "import sys, trial_runner.tasks\n"
        "heavy = {'torch', 'sacrebleu', 'rouge_score', 'nltk', 'sklearn', 'datasets'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or None)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
