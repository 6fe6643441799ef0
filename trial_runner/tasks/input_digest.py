"""Digest of the inputs of trials: the rows of each split, the tokenizer and the weights of the backbone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from trial_runner.backbones.weight_hash import files_sha256, weight_paths
from trial_runner.tasks.kind import Prepared
from trial_runner.tasks.splits import SplitDigest

_WITH_LABELS = ("classification", "regression")


@dataclass(frozen=True, slots=True, kw_only=True)
class InputDigest:
    """Digest of the inputs of the trials of a study.

    Attributes:
        splits: Digest of each split.
        tokenizer: Hash of the tokenizer, and the token ids that the task adds.
        weights: SHA-256 over the files of the backbone's weights; None if they were not on the machine.
    """

    splits: Mapping[str, SplitDigest]
    tokenizer: str
    weights: str | None

    @classmethod
    def of(cls, task: Prepared, backbone: str) -> Self:
        """Compute the digest of a task and a backbone.

        Raises:
            BackboneError: If the backbone cannot be found.
        """
        weights = files_sha256(backbone) if weight_paths(backbone) else None
        return cls(splits=task.digests, tokenizer=task.tokenizer, weights=weights)

    def differences(self, now: "InputDigest", kind: str) -> dict[str, str]:
        """Return the present differences: one phrase by split, ``tokenizer`` and ``weights``.

        Args:
            now: Present digest.
            kind: Kind of the task, which decides between the words labels and answers.
        """
        answers = "labels" if kind in _WITH_LABELS else "answers"
        found = {
            split: f"{split} has {difference}"
            for split, digest in self.splits.items()
            if split in now.splits and (difference := digest.difference(now.splits[split], answers))
        }
        if self.tokenizer != now.tokenizer:
            found["tokenizer"] = "the backbone has another tokenizer"
        if None not in (self.weights, now.weights) and self.weights != now.weights:
            found["weights"] = "the backbone has other weights"
        return found
