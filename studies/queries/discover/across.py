"""The rules of the papers, held against several studies."""

from collections.abc import Mapping
from dataclasses import dataclass

from studies.errors import WishError
from studies.queries.discover.answer import Answer, Finding
from studies.queries.discover.contrasts import LEAST, Contrast, pairs
from studies.queries.discover.knowledge import Effect, Knowledge
from studies.queries.discover.papers import PAPER_RULES, PaperRule
from studies.queries.discover.pooling import pooled
from studies.queries.discover.words import contrast_words

QUESTION = "Do the papers' rules hold across studies?"
SPREADS = "spreads"
"""The unit where studies have several metrics: of every study, the spread of its scores."""

_NOTE = (
    "Every study's matched contrast, without what the search expects of the papers' rules; pooled as a random-effects "
    "mean (DerSimonian and Laird) with the interval of Hartung and Knapp."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledRule(Finding):
    """A rule of a paper over studies; ``n`` counts these.

    Attributes:
        claim: What the paper says.
        source: Where it stands.
        side: Where it is asked.
        unit: Of the value: the metric, or ``spreads``.
        between: Standard deviation of the effect over studies.
        effects: Of every study that can tell, in the order of their names: effect and half its 90% interval.
        published: The differences that the paper's claim rests on, in its own metrics.
        agrees: Whether the sign is the paper's, resolved or not.
    """

    claim: str
    source: str
    side: str
    unit: str
    between: float
    effects: tuple[str, ...]
    published: tuple[str, ...]
    agrees: bool


def across(studies: Mapping[str, Knowledge]) -> Answer:
    """What the studies say of every rule of the papers.

    Args:
        studies: By name; at least two.

    Raises:
        StudiesError: If there are fewer.
    """
    if len(studies) < 2:
        raise WishError(f"at least two studies must be pooled; got {', '.join(studies) or 'none'}. Name another.")
    metrics = {one.metric for one in studies.values()}
    unit = metrics.pop() if len(metrics) == 1 else SPREADS
    rows = []
    for rule in PAPER_RULES:
        for contrast in rule.contrasts:
            found = {name: effect for name, one in studies.items() if (effect := _effect(one, contrast, unit))}
            if found:
                rows.append(_row(rule, contrast, found, unit))
    resolved = [row.sentence for row in rows if row.is_resolved]
    nothing = f"None of the papers' rules is resolved by {len(studies)} studies."
    return Answer(
        view="across",
        question=QUESTION,
        rows=tuple(rows),
        sentences=tuple(resolved) or (nothing,),
        note=_NOTE,
        kind=PooledRule,
    )


def _effect(knowledge: Knowledge, contrast: Contrast, unit: str) -> Effect | None:
    """In a study; None where its space can hardly compare the two."""
    is_searched = contrast.side == "sides" or contrast.side in knowledge.measure.parts
    if not is_searched or len(knowledge.measure.parts) < (2 if contrast.side == "sides" else 1):
        return None
    some = pairs(knowledge.measure, contrast)
    if len(some) < LEAST:
        return None
    effect = knowledge.effect(*([knowledge.tuned(one) for one in group] for group in (some.having, some.lacking)))
    per = knowledge.spread if unit == SPREADS else 1.0
    return Effect(mean=effect.mean / per, deviation=effect.deviation / per, pairs=effect.pairs)


def _row(rule: PaperRule, contrast: Contrast, effects: Mapping[str, Effect], unit: str) -> PooledRule:
    mean = pooled([one.mean for one in effects.values()], [one.deviation for one in effects.values()])
    agrees = mean.mean > 0
    words = contrast_words(contrast)
    if mean.is_resolved:
        said = f"{words} is worth"
        verdict = f", {'as' if agrees else 'unlike'} {rule.source} has it"
    else:
        said, verdict = f"{words} is not resolved:", ""
    number = f"{mean.mean:+.4f} {unit} (90%: {mean.low:+.4f} to {mean.high:+.4f}; {mean.studies} studies)"
    return PooledRule(
        claim=rule.claim,
        source=rule.source,
        side=contrast.side,
        unit=unit,
        between=mean.between,
        effects=tuple(f"{name} {one.mean:+.4f} ± {one.high - one.mean:.4f}" for name, one in effects.items()),
        published=tuple(f"{where}: {value:+.2f}" for where, value in rule.published),
        agrees=agrees,
        value=mean.mean,
        low=mean.low,
        high=mean.high,
        n=mean.studies,
        is_resolved=mean.is_resolved,
        sentence=f"{said} {number}{verdict}.",
    )
