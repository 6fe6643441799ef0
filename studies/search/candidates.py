"""Candidates of the search space as trial records, and trial records as requests to a worker."""

from collections.abc import Sequence
from dataclasses import fields, replace

from search_space.backbones.shape import BackboneShape
from search_space.edit import Edit
from search_space.parameter_counts.flops import extra_flops
from search_space.space.parameter_table import HEAD_RATE, LORA_DROPOUT
from search_space.space.space import Candidate
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
    """Return the record of a proposal before it runs; its description takes as long as all the rest."""
    # the name of a published method is shown beside its description
    describe = sentence if candidate.method is None else phrase
    return TrialRecord(
        number=number,
        origin="proposed" if candidate.method is None else "published",
        method=candidate.method,
        fingerprint=candidate.fingerprint,
        description=describe(candidate.configuration, shape) if description is None else description,
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
    dimensions = {one.name: getattr(view, one.name) for one in fields(SideDimensions)}
    return SideDimensions(**dimensions | {"learning_rate": learning_rate})


def trial_request(trial: TrialRecord, *, attempt: int, plan: TrainingPlan) -> TrialRequest:
    """Return the request by which a worker trains a recorded trial."""
    if LORA_DROPOUT in trial.proposal:
        plan = replace(plan, lora_dropout=float(str(trial.proposal[LORA_DROPOUT])))
    return TrialRequest(
        trial=trial.number,
        attempt=attempt,
        configuration=trial.configuration,
        learning_rates=(
            0.0 if trial.attention is None else trial.attention.learning_rate or 0.0,
            0.0 if trial.ffn is None else trial.ffn.learning_rate or 0.0,
            # searched per trial, or one for the study
            float(str(trial.proposal.get(HEAD_RATE, plan.head_learning_rate))),
        ),
        plan=plan,
        seed=trial.seed,
    )
