"""How much better one trial is than another on the same validation examples."""

from studies.search.evidence import Evidence, paired_evidence
from studies.store.ledger import Ledger


def paired_difference(
    ledger: Ledger, name: str, first: int, second: int, *, step: int | None = None
) -> Evidence | None:
    """How much better a trial is than another, example by example: by accuracy, else by the loss.

    Args:
        ledger: Where the study is.
        name: Of the study.
        first: Number of a trial.
        second: Number of another.
        step: Where both are compared; None for the last step at which both were measured.

    Returns:
        None where they were not both measured there, or not on as many examples.

    Raises:
        UnknownStudyError: If there is no study of that name.
        UnknownTrialError: If it has no trial of one of the numbers.
    """
    study = ledger.study(name)
    found = []
    for number in (first, second):
        ledger.trial(study.id, number)
        found.append({one.step: one for one in ledger.examples(study.id, number)})
    common = sorted(found[0].keys() & found[1].keys())
    at = step if step is not None else max(common, default=None)
    if at not in common:
        return None
    return paired_evidence(found[0][at], found[1][at])
