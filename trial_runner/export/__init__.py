"""Export of a trained trial: in the project's own format, merged into plain weights, or as an adapter of peft.

===================  ============================================================================
``trained``          trained delta of a trial, its stored tensors, the project's own format
``facts``            JSON files of an export; source and licence of its backbone
``loader``           attachment of an export to a freshly loaded backbone
``heads``            task head in files of its own
``merge``            edits folded into the weights of a backbone
``mean_pooled``      classifier whose file is written next to merged weights
``peft_format``      configurations that peft can express, written as its adapters
``predictors``       models that label or generate texts with an export of any form
``predictions``      labels and texts predicted with an export of any form
``agreement``        check that an export computes the trial's outputs
===================  ============================================================================
"""

from trial_runner.export.facts import BackboneFacts
from trial_runner.export.heads import load_head
from trial_runner.export.loader import LoadedDelta, load_delta, open_delta
from trial_runner.export.merge import merge, write_merged
from trial_runner.export.peft_format import write_peft
from trial_runner.export.trained import TrainedDelta, trained_delta, write_delta, write_facts
from trial_runner.files import new_folder

__all__ = [
    "BackboneFacts",
    "LoadedDelta",
    "TrainedDelta",
    "load_delta",
    "load_head",
    "merge",
    "new_folder",
    "open_delta",
    "trained_delta",
    "write_delta",
    "write_facts",
    "write_merged",
    "write_peft",
]
