"""Prior mean of the scores, before any trial."""

from studies.surrogate.posterior import SurrogateFitter
from studies.surrogate.prior_mean import no_rules, papers_log_odds


def test_the_papers_bet_on_mam_rather_than_on_its_parts(encoding, space, history):
    def odds(*methods: str) -> list[float]:
        return [papers_log_odds(encoding.features_of(one)) for one in history(len(methods), published=methods)]

    mam, prefix, sequential, parallel = odds(
        "mam_adapter", "prefix_tuning", "sequential_adapter_ffn", "scaled_parallel_adapter_ffn"
    )
    assert mam > parallel > sequential
    assert mam > prefix
    assert papers_log_odds((None, None)) == 0


def test_without_trust_in_the_papers_their_rules_make_no_difference(encoding, history):
    trials = history(3, published=("mam_adapter", "sequential_adapter_ffn", "bitfit"))
    views = [encoding.features_of(one) for one in trials]
    trusting = SurrogateFitter(encoding.features_of).points(views).trends
    doubting = SurrogateFitter(encoding.features_of, rules=no_rules).points(views).trends
    assert trusting[:, 0].tolist() == doubting[:, 0].tolist()
    assert len(set(trusting[:, 1].tolist())) == 3
    assert doubting[:, 1].tolist() == [0, 0, 0]
