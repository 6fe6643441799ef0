"""Warnings of a launch before any work begins."""

from collections.abc import Iterator

from search_space.space.random_draw import RandomTrial
from search_space.space.space import SearchSpace
from studies.search.initial_design import InitialDesign
from studies.search.warm_start import WarmStart

_DRAWS = 64
_UNUSED = 0.9
"""Share of the budget that at least one random draw must use; below it the budget is too large for the space."""


def launch_warnings(space: SearchSpace, initial_design: InitialDesign, *, trials: int) -> tuple[str, ...]:
    """Return one line for each warning.

    Args:
        space: Search space of the study.
        initial_design: First trials of the study.
        trials: Number of trials of the study.
    """
    return tuple([*_learned(initial_design.warm_start), *_too_many(space, initial_design, trials), *_too_large(space)])


def _learned(warm_start: WarmStart) -> Iterator[str]:
    """Yield the studies of the warm start and its effects."""
    if not warm_start.sources:
        return
    count = len(warm_start.starts)
    effects = [f"{count} of their configurations come{'s' * (count == 1)} first"] if count else []
    if warm_start.replaced:
        effects[-1] += f" in place of {', '.join(warm_start.replaced)}"
    if warm_start.rates:
        effects.append(f"learning rates of {', '.join(warm_start.rates)} are drawn near their best ones")
    yield f"warm start from {', '.join(warm_start.sources)}: {'; '.join(effects) or 'nothing applies to this space'}."


def _too_many(space: SearchSpace, initial_design: InitialDesign, trials: int) -> Iterator[str]:
    fitting = space.published_that_fit(initial_design.published)
    first = len(initial_design.warm_start.starts) + len(fitting)
    kind = "published methods" if not initial_design.warm_start.starts else "published methods and warm-start trials"
    if first < trials or not space.is_searched:
        if space.is_searched and first > trials / 2:
            at_first = " as they are tried first" * bool(space.options.methods)
            yield f"{first} of {trials} trials are {kind}{at_first}; {trials - first} are searched."
        return
    left = fitting[max(0, trials - len(initial_design.warm_start.starts)) :]
    key = "space.methods" if space.options.methods else "search.published"
    begin = "its one trial goes" if trials == 1 else f"all of its {trials} trials go"
    untried = f" {', '.join(left)} will not be tried." if left else ""
    yield (
        f"this study searches nothing: {begin} to the first of {first} {kind}.{untried} "
        f"Set --trials above {first}, or {key}=[{fitting[0] if fitting else ''}]."
    )


def _too_large(space: SearchSpace) -> Iterator[str]:
    if not space.trees or space.options.rank:
        return
    most = max(space.suggest(RandomTrial(seed)).counts.stored for seed in range(_DRAWS))
    if most < _UNUSED * space.budget:
        yield (
            f"the budget is larger than any configuration of {_DRAWS} random draws: they store at most {most:,} of "
            f"{space.budget:,} parameters. Set budget={most} for the same study."
        )
