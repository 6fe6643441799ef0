"""What a study has taught in three to five sentences."""

from studies.analysis.card import Card, estimate_words
from studies.analysis.discover.study_posterior import StudyPosterior
from studies.score_evidence import Estimate
from studies.surrogate.observation import Observation


def summary(knowledge: StudyPosterior, cards: list[Card]) -> tuple[str, ...]:
    """What was found, what mattered and what did not, what the trials do not tell, and what to run to know.

    Args:
        knowledge: That was asked.
        cards: Its answers.

    Raises:
        StudiesError: If no trial is complete.
    """
    by_name = {card.name: card for card in cards}
    said = [_found(knowledge)]
    said += by_name["matters"].sentences if "matters" in by_name else ()
    said += by_name["winner"].sentences[1:2] if "winner" in by_name else ()
    name = knowledge.study or "STUDY"
    said.append(
        f"To know: 'deltaspace confirm {name}' trains the best again with fresh seeds, 'deltaspace ablate {name} best' "
        "its differences one by one; more trials tell more of what matters."
    )
    return tuple(said)


def _found(knowledge: StudyPosterior) -> str:
    own, published = ([one for one in knowledge.complete if (one.method is None) == is_own] for is_own in (True, False))
    if not own or not published:
        winner = knowledge.winner
        mean = float(knowledge.expected([winner])[0][0])
        return (
            f"The best of {len(knowledge.complete)} complete trials is {_name(winner)}: {mean:.4f} {knowledge.metric}."
        )
    one, other = knowledge.best_of(own), knowledge.best_of(published)
    gap = Estimate.of_difference(*knowledge.expected([one, other]))
    worth = f"{estimate_words(gap, knowledge.metric)} by estimate (95%)"
    if gap.low > 0:
        return f"The best discovery, {_name(one)}, beats the best published method, {_name(other)}: {worth}."
    if gap.high < 0:
        return f"Nothing beats the best published method, {_name(other)}; the best discovery, {_name(one)}: {worth}."
    return (
        f"{knowledge.trials} do not tell whether {_name(one)} beats the best published method, {_name(other)}: {worth}."
    )


def _name(trial: Observation) -> str:
    return f"trial {trial.number}" if trial.method is None else f"{trial.method} (trial {trial.number})"
