"""V8: rules in words, from matched contrasts."""

from dataclasses import dataclass

from studies.queries.discover.answer import Answer, Finding
from studies.queries.discover.contrasts import LEAST, REST, Contrast, Pairs, contrasts, pairs
from studies.queries.discover.knowledge import Effect, Knowledge
from studies.queries.discover.words import contrast_words, interval_words

QUESTION = "Which rules hold here?"

_NOTE = (
    "Each effect is the mean over pairs of configurations of the whole space that are the same but for the one thing "
    "and what must follow from it, both at the rates that promise most for their forms, within the same budget."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Finding):
    """How much better a value of a dimension is than another, all else the same.

    Attributes:
        side: ``attention``, ``ffn``, or ``sides``.
        dimension: What differs; ``edited`` of which sides have edits.
        better: The value whose effect this is.
        worse: What it is compared with.
        pairs: Of configurations, in the mean.
        support: Share of the draws of the space that have one of the two values and a partner with the other.
    """

    side: str
    dimension: str
    better: str
    worse: str
    pairs: int
    support: float


def rules(knowledge: Knowledge) -> Answer:
    """Matched contrasts of every dimension, those that are resolved first."""
    measure = knowledge.measure
    found = []
    for contrast in contrasts(measure):
        some = pairs(measure, contrast)
        if len(some) >= LEAST:
            found.append(_rule(knowledge, contrast, some))
    found.sort(key=lambda rule: (not rule.is_resolved, -abs(rule.value) if rule.is_resolved else 0.0))
    resolved = [rule.sentence for rule in found if rule.is_resolved]
    nothing = f"No rule is resolved by {sum(bool(one.readings) for one in knowledge.history)} trials."
    return Answer(
        view="V8",
        question=QUESTION,
        rows=tuple(found),
        sentences=tuple(resolved) or (nothing,),
        note=_NOTE,
        kind=Rule,
    )


def _rule(knowledge: Knowledge, contrast: Contrast, some: Pairs) -> Rule:
    effect = knowledge.effect(
        [knowledge.tuned(one) for one in some.having], [knowledge.tuned(one) for one in some.lacking]
    )
    if effect.is_resolved and effect.mean < 0 and contrast.other != REST:
        # what is sure is said of what is better
        contrast = Contrast(contrast.side, contrast.dimension, contrast.other, contrast.value)
        effect = Effect(mean=-effect.mean, deviation=effect.deviation, pairs=effect.pairs)
    worth = interval_words(effect.mean, effect.low, effect.high, knowledge.metric)
    verb = "is worth" if effect.is_resolved else "is not resolved:"
    return Rule(
        side=contrast.side,
        dimension=contrast.dimension,
        better=contrast.value,
        worse=contrast.other,
        pairs=effect.pairs,
        support=some.support,
        value=effect.mean,
        low=effect.low,
        high=effect.high,
        n=_tried(knowledge, contrast),
        is_resolved=effect.is_resolved,
        sentence=f"{contrast_words(contrast)} {verb} {worth}.",
    )


def _tried(knowledge: Knowledge, contrast: Contrast) -> int:
    """Trials that have one of the two values."""
    if contrast.side == "sides":
        return knowledge.tried.editing(contrast.value) + knowledge.tried.editing(contrast.other)
    values = () if contrast.other == REST else (contrast.value, contrast.other)
    return knowledge.tried.having(contrast.side, contrast.dimension, *values)
