"""Candidates of the search space as trials of the ledger, and trials of the ledger as requests to a pack."""

from collections.abc import Sequence
from dataclasses import fields

from search_space.backbones.shape import BackboneShape
from search_space.edit import Edit
from search_space.parameter_counts.flops import extra_flops
from search_space.space.space import HEAD_RATE, Candidate
from search_space.words.describe import phrase, sentence, side_view
from search_space.words.dimensions import SideDimensions
from studies.records import TrialRecord
from studies.seeds import hashed_seed
from trial_runner.requests import TrainingPlan, TrialRequest


def new_trial(
    candidate: Candidate,
    shape: BackboneShape,
    *,
    number: int = 0,
    study_seed: int = 0,
    head_parameters: int,
    description: str | None = None,
) -> TrialRecord:
    """The row of a proposal, before it is run; finding words for it takes as long as all else."""
    # the name of a published method stands beside what it is
    words = sentence if candidate.method is None else phrase
    return TrialRecord(
        number=number,
        origin="proposed" if candidate.method is None else "published",
        method=candidate.method,
        fingerprint=candidate.fingerprint,
        description=words(candidate.configuration, shape) if description is None else description,
        configuration=candidate.configuration,
        proposal=dict(candidate.parameters),
        seed=hashed_seed("trial", study_seed, number, bits=31),
        attention=_dimensions(candidate.configuration.attention, candidate.attention_learning_rate),
        ffn=_dimensions(candidate.configuration.ffn, candidate.ffn_learning_rate),
        attention_share=candidate.attention_share,
        stored_parameters=candidate.counts.stored,
        trained_parameters=candidate.counts.trained,
        head_parameters=head_parameters,
        replicate_of=None,
        extra_flops=extra_flops(candidate.configuration, shape),
    )


def _dimensions(edits: Sequence[Edit], learning_rate: float | None) -> SideDimensions | None:
    view = side_view(edits)
    if view is None or learning_rate is None:
        return None
    shown = {one.name: getattr(view, one.name) for one in fields(SideDimensions)}
    return SideDimensions(**shown | {"learning_rate": learning_rate})


def trial_request(trial: TrialRecord, *, attempt: int, plan: TrainingPlan) -> TrialRequest:
    """What a pack is asked to train, from what the ledger holds."""
    return TrialRequest(
        trial=trial.number,
        attempt=attempt,
        configuration=trial.configuration,
        learning_rates=(
            0.0 if trial.attention is None else trial.attention.learning_rate or 0.0,
            0.0 if trial.ffn is None else trial.ffn.learning_rate or 0.0,
            # its own where that is searched, else that of all
            float(str(trial.proposal.get(HEAD_RATE, plan.head_learning_rate))),
        ),
        plan=plan,
        seed=trial.seed,
    )
