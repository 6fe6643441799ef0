"""How constant predictions are."""

from trial_runner.tasks import SAME_PREDICTION, same_prediction


def test_the_most_frequent_prediction_is_counted():
    assert same_prediction([2, 1, 2, 2]) == {SAME_PREDICTION: 0.75}
    assert same_prediction(["", "", "a", "b"]) == {SAME_PREDICTION: 0.5}
    assert same_prediction(iter([3])) == {SAME_PREDICTION: 1.0}
