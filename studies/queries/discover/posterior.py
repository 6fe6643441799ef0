"""The posterior of a study at any candidates, from its ledger."""

from collections.abc import Sequence

from search_space.space.space import Candidate, SearchSpace
from studies.errors import StudiesError
from studies.queries.discover.between import Array, Joint
from studies.search.factored.belief import FIRST_CHECKPOINT, Believer
from studies.search.factored.from_ledger import observations, share_error
from studies.search.factored.genome import Genome
from studies.search.factored.observation import Observation
from studies.store.ledger import Ledger
from studies.store.records import StudyRecord, TrialRecord, TrialState
from trial_runner.tasks.metrics.classes import ACCURACY


def joint_of(ledger: Ledger, study: StudyRecord, trials: Sequence[TrialRecord], space: SearchSpace) -> Joint:
    """What the trials of a study say of candidates, the papers' rules aside.

    Raises:
        StudiesError: If too few trials have a reading.
    """
    steps = max((trial.steps for trial in trials if trial.state is TrialState.COMPLETE), default=1)
    examples = ledger.example_count(study.id) if study.metric == ACCURACY.name else None
    error = None if examples is None else share_error(examples)
    history = observations(trials, ledger.readings_by_trial(study.id), steps=steps, standard_error=error)
    heard = sum(bool(one.readings) for one in history)
    if heard < FIRST_CHECKPOINT:
        raise StudiesError(
            f"a study must have {FIRST_CHECKPOINT} trials with a reading before its differences can be told; "
            f"{study.name} has {heard}. Launch more trials."
        )
    believer = Believer(Genome(space), trusts_papers=False)
    belief = believer.belief(history)

    def joint(candidates: Sequence[Candidate]) -> tuple[Array, Array]:
        seen = [believer.view(Observation.of(one, number=number)) for number, one in enumerate(candidates)]
        means, covariance = belief.process.joint(believer.points(seen))
        return belief.scale.middle + belief.scale.spread * means, belief.scale.spread**2 * covariance

    return joint
