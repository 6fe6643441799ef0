"""Configurations of an ablation: the path from a published method to a trial, one difference at a time."""

from collections.abc import Sequence
from functools import partial

from search_space.published.point import PublishedPoint
from search_space.space.space import Candidate, SearchSpace
from studies.analysis.baselines import baseline, best_first, candidate_of_trial
from studies.analysis.discover.between import Between, Joint
from studies.analysis.estimates import NO_ESTIMATES, Estimates
from studies.analysis.methods import first_other_method, method_of
from studies.confirmation.contenders import ContenderEntry, entry_of
from studies.confirmation.request import AGAINST, AblationRequest
from studies.errors import ConfirmationError
from studies.records import TrialRecord


def path_entries(
    request: AblationRequest,
    trials: Sequence[TrialRecord],
    space: SearchSpace,
    joint: Joint,
    estimates: Estimates = NO_ESTIMATES,
) -> list[ContenderEntry]:
    """Return the path from a published method to a trial in reverse: the trial first, the method last.

    Each entry differs from the next in the change with the largest expected gain. A step equal to an earlier one is
    skipped.

    Args:
        request: Request with the ends of the path.
        trials: Trials of the study.
        space: Search space of the study.
        joint: Posterior of the study.
        estimates: Expected scores of the trials.

    Raises:
        ConfirmationError: If both ends are the same configuration, or the trial is missing or a replicate.
    """
    best = best_first(trials, space, estimates)
    last = best[0] if request.trial == "best" else next((one for one in trials if one.number == request.trial), None)
    if last is None:
        numbers = f"0 to {len(trials) - 1}" if trials else "none"
        raise ConfirmationError(
            f"study '{request.study}' must contain the trial to ablate; got {request.trial}, it has {numbers}."
        )
    if last.replicate_of is not None:
        raise ConfirmationError(
            f"the trial to ablate must repeat no other trial; got {last.number}, which repeats {last.replicate_of}. "
            f"Ablate trial {last.replicate_of}."
        )
    against = request.against or PublishedPoint(first_other_method(best, method_of(last)) or AGAINST[0])
    first = baseline(against, best, trials, space)
    begin = candidate_of_trial(first, space) if isinstance(first, TrialRecord) else first
    between = Between(begin, candidate_of_trial(last, space), space, joint)
    found = _path(between)
    if len(found) < 2:
        raise ConfirmationError(
            f"an ablation needs two different configurations; trial {last.number} is {against} itself. "
            "Choose another method with --against, or another trial."
        )
    entry = partial(entry_of, space=space, head_parameters=last.head_parameters)
    hybrids = [
        entry(candidate, label=f"step {number}", change=change)
        for number, (candidate, change) in enumerate(found[1:-1], 1)
    ]
    return [
        entry(last, label=f"trial {last.number}", is_top=True, change=found[-1][1]),
        *reversed(hybrids),
        entry(first, label=against, baselines=(against,)),
    ]


def _path(between: Between) -> list[tuple[Candidate, str]]:
    """Return the candidates of the path with their changes; the first has an empty text."""
    found: list[tuple[Candidate, str]] = [(between.first, "")]
    changed: list[str] = []
    for step in between.steps:
        changed.append(step.words)
        known = [candidate.fingerprint for candidate, _ in found]
        if step.candidate.fingerprint in known:
            place = known.index(step.candidate.fingerprint)
            changed = [*(change for _, change in found[place + 1 :]), *changed]
            del found[place + 1 :]
            continue
        found.append((step.candidate, "; ".join(changed)))
        changed = []
    if changed and len(found) > 1:
        found[-1] = (between.last, "; ".join([found[-1][1], *changed]))
    return found
