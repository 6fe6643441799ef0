"""What a launch says of a study before any work begins: what it learned, and what will come to nothing."""

from collections.abc import Iterator

from search_space.space.random_draw import RandomTrial
from search_space.space.space import SearchSpace
from studies.search.initial_design import InitialDesign
from studies.search.warm_start import WarmStart

_DRAWS = 64
_UNUSED = 0.9
"""A budget is too large for a space if no draw uses more than this of it."""


def outlook(space: SearchSpace, opening: InitialDesign, *, trials: int) -> tuple[str, ...]:
    """One line for each thing that is worth knowing beforehand; none if there is nothing to say.

    Args:
        space: What may be proposed.
        opening: What comes first.
        trials: Of the study.
    """
    return tuple([*_learned(opening.lessons), *_too_many(space, opening, trials), *_too_large(space)])


def _learned(lessons: WarmStart) -> Iterator[str]:
    """From which studies something was learned, and what it changed."""
    if not lessons.sources:
        return
    count = len(lessons.starts)
    told = [f"{count} configuration{'s' * (count != 1)} of theirs come{'s' * (count == 1)} first"] if count else []
    if lessons.replaced:
        told[-1] += f" in place of {', '.join(lessons.replaced)}"
    if lessons.rates:
        told.append(f"rates are drawn where theirs were best for {', '.join(lessons.rates)}")
    yield f"learned from {', '.join(lessons.sources)}: {'; '.join(told) or 'nothing that can be used here'}."


def _too_many(space: SearchSpace, opening: InitialDesign, trials: int) -> Iterator[str]:
    fitting = space.published_that_fit(opening.published)
    first = len(opening.lessons.starts) + len(fitting)
    if first < trials or not space.trees:
        return
    left = fitting[max(0, trials - len(opening.lessons.starts)) :]
    untried = f" {', '.join(left)} will not be tried." if left else ""
    yield (
        f"nothing will be discovered: {first} trials come first, published methods and what was learned, and the "
        f"study has {trials}.{untried} Raise trials above {first}, or list fewer in search.published."
    )


def _too_large(space: SearchSpace) -> Iterator[str]:
    if not space.trees:
        return
    most = max(space.suggest(RandomTrial(seed)).counts.stored for seed in range(_DRAWS))
    if most < _UNUSED * space.budget:
        yield (
            f"the budget is larger than what a configuration can use: of {_DRAWS} draws none stores more than "
            f"{most:,} of {space.budget:,} parameters. A budget of {most:,} says the same."
        )
