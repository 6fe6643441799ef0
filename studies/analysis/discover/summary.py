"""Summary of a study's discoveries in three to five sentences."""

from studies.analysis.card import Card
from studies.analysis.discover.study_posterior import StudyPosterior
from studies.analysis.methods import method_of, numbered
from studies.score_evidence import Estimate


def summary(knowledge: StudyPosterior, cards: list[Card]) -> tuple[str, ...]:
    """Return sentences on results, important and unimportant choices, open questions, and the next command.

    Args:
        knowledge: Posterior of the study.
        cards: Cards of its analyses.

    Raises:
        StudiesError: If no trial is complete.
    """
    by_name = {card.name: card for card in cards}
    sentences = [_lead(knowledge)]
    sentences += by_name["matters"].sentences if "matters" in by_name else ()
    sentences += by_name["winner"].sentences[1:2] if "winner" in by_name else ()
    name = knowledge.study or "STUDY"
    sentences.append(
        f"To confirm the best trial with fresh seeds: deltaspace confirm {name}. "
        f"To train its differences one by one: deltaspace ablate {name} best."
    )
    return tuple(sentences)


def _lead(knowledge: StudyPosterior) -> str:
    own, published = (
        [one for one in knowledge.complete if (method_of(one) is None) == is_own] for is_own in (True, False)
    )
    if not own or not published:
        winner = knowledge.winner
        mean = float(knowledge.expected([winner])[0][0])
        return f"The best trial is {numbered(winner)}: {mean:.4f} {knowledge.metric} expected."
    one, other = knowledge.best_of(own), knowledge.best_of(published)
    gap = Estimate.of_difference(*knowledge.expected([one, other]))
    if gap.low > 0:
        decision = "shown to be better (95%)"
    elif gap.high < 0:
        decision = "shown to be worse (95%)"
    else:
        decision = "not decided (95%)"
    amount = f"{abs(gap.mean):.4f} ± {gap.reach:.4f} {'more' if gap.mean >= 0 else 'less'} {knowledge.metric}"
    found = numbered(one)
    return (
        f"{found[0].upper()}{found[1:]}, the best discovery, is expected to have {amount} than {numbered(other)}, "
        f"the best published method: {decision}."
    )
