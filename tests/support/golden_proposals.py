"""A study of planted scores: four trials at a time, pruned, failed, repeated, and rebuilt from its records twice.

As a program it prints a digest of all proposals for every sampler of ``argv[1:]``.
"""

import hashlib
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from support.simulated_search import whole_space

from search_space.codec import configuration_to_json
from search_space.space.space import Candidate, SearchSpace
from studies.history.history import StudyHistory
from studies.history.noise import ScoreNoise
from studies.records import Reading, TrialReport, TrialState
from studies.search.candidates import new_trial
from studies.search.initial_design import InitialDesign
from studies.search.proposer import Proposer

START = datetime(2026, 1, 1, tzinfo=UTC)
NOISE = ScoreNoise(steps=200, examples=500, rung_examples=256)
OPENING = InitialDesign(published=("mam_adapter", "bitfit", "lora_qv", "lora_ffn", "head_only"))
SEED, TRIALS, SLOTS = 3, 70, 4
REPLICATES, REBUILT_AT, STEPS = (40, 41, 55), (60, 110), (50, 100, 200)


def share(*parts: object) -> float:
    """Compute a number in [0, 1) that depends on all parts."""
    return int.from_bytes(hashlib.sha256("/".join(map(str, parts)).encode()).digest()[:6], "big") / 2**48


def truth(candidate: Candidate) -> float:
    """Compute the planted score of a candidate."""
    edits = candidate.configuration.edits
    forms = [edit.form.name for edit in edits]
    score = 0.35 + 0.05 * ("lowrank" in forms) + 0.04 * ("bottleneck" in forms) - 0.02 * ("const" in forms)
    for rate in (candidate.attention_learning_rate, candidate.ffn_learning_rate):
        if rate:
            score -= 0.004 * min(abs(math.log(rate / 2e-3)), 5)
    for edit in edits:
        score += 0.02 * (share(edit.form.name, edit.write, edit.read, edit.gate.qualified_name) - 0.5)
    return score


def fact(candidate: Candidate) -> dict[str, Any]:
    """Return the facts that are equal on every processor: the structure, and numbers to six digits."""

    def rounded(value: object) -> object:
        return float(f"{value:.6g}") if isinstance(value, float) else value

    rates = (candidate.attention_learning_rate, candidate.ffn_learning_rate)
    return {
        "c": configuration_to_json(candidate.configuration),
        "r": [rounded(rate or 0.0) for rate in rates],
        "m": candidate.method,
        "p": {name: rounded(value) for name, value in sorted(candidate.parameters.items())},
        "h": rounded(candidate.head_learning_rate or 0.0),
    }


class GoldenStudy:
    """One study."""

    def __init__(self, space: SearchSpace, sampler: str) -> None:
        self.space, self.sampler = space, sampler
        self.proposer = self.new()
        self.history = StudyHistory(NOISE)
        self.candidates: list[Candidate] = []
        self.facts: list[dict[str, Any]] = []

    def new(self) -> Proposer:
        return Proposer(self.space, sampler=self.sampler, seed=SEED, initial_design=OPENING)

    def run(self) -> str:
        """Return a digest of all proposals, and of the win probabilities at rungs."""
        running: list[tuple[int, int]] = []
        clock = 0
        while len(self.history) < TRIALS or running:
            while len(running) < SLOTS and len(self.history) < TRIALS:
                self.begin(len(self.history))
                running.append((len(self.history) - 1, 0))
            clock += 1
            place = int(share("which", clock) * len(running))
            number, rung = running[place]
            is_over = self.read(number, rung, clock)
            running[place : place + 1] = [] if is_over else [(number, rung + 1)]
            if clock in REBUILT_AT:
                self.proposer = self.new()
                readings = {trial.number: known for trial, known in self.history.entries()}
                self.history = StudyHistory.of(list(self.history), readings, NOISE)
        digested = json.dumps(self.facts, sort_keys=True)
        return hashlib.sha256(digested.encode()).hexdigest()[:16]

    def begin(self, number: int) -> None:
        """Begin the next trial: a proposal, or one of the best two again."""
        if number in REPLICATES:
            done = [one for one in self.history if one.state is TrialState.COMPLETE and one.replicate_of is None]
            best = sorted(done, key=lambda one: (-(one.score or 0.0), one.number))[number % 2]
            changes = {"origin": "replicate", "replicate_of": best.number, "seed": number}
            trial = best.again(number=number, fingerprint=f"{best.fingerprint}:{number}", **changes)
            self.candidates.append(self.candidates[best.number])
            self.facts.append({"replicate": best.number})
        else:
            candidate = self.proposer.propose(self.history)
            trial = new_trial(candidate, self.space.shape, number=number, study_seed=SEED, head_parameters=10)
            self.candidates.append(candidate)
            self.facts.append(fact(candidate))
        began_at = START + timedelta(minutes=number)
        self.history = self.history.added([replace(trial, state=TrialState.RUNNING, attempt=1, created_at=began_at)])

    def read(self, number: int, rung: int, clock: int) -> bool:
        """Add one more reading; return whether the trial ends with it."""
        step = STEPS[rung]
        noise = (share("noise", number, step) - 0.5) * 0.06
        score = round((truth(self.candidates[number]) + noise - 0.05 * (2 - rung)) * 500) / 500
        loss = 2.0 - 2 * score + 0.1 * (share("loss", number, step) - 0.5)
        metrics = {"validation_loss": loss}
        reading = Reading(trial=number, step=step, score=score, metrics=metrics, train_loss=loss, seconds=1.0)
        self.history = self.history.reported(TrialReport(trial=number, attempt=1, reading=reading))
        state = self.end(number, step)
        if state is None:
            return False
        last = score if state is TrialState.COMPLETE else None
        end = TrialReport(
            trial=number, attempt=1, state=state, score=last, reason=None if last is not None else "an end"
        )
        self.history = self.history.reported(end, START + timedelta(days=1, seconds=clock))
        return True

    def end(self, number: int, step: int) -> TrialState | None:
        """Return the end of a trial at a step; None if it goes on."""
        if share("fail", number) < 0.06 and step == STEPS[1]:
            return TrialState.FAILED
        if step == STEPS[-1]:
            return TrialState.COMPLETE
        if self.history[number].replicate_of is not None:
            return None
        return TrialState.PRUNED if share("prune", number, step) < 0.35 else None


def digests(samplers: Sequence[str]) -> dict[str, str]:
    """Return the digest of each sampler's proposals."""
    space = whole_space()
    return {sampler: GoldenStudy(space, sampler).run() for sampler in samplers}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(digests(sys.argv[1:]), indent=4) + "\n")
