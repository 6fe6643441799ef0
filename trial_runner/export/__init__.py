"""Taking a trained trial away: as files of this project, merged into plain weights, or as an adapter of peft.

===================  ============================================================================
``trained``          what training left of a trial, the tensors that are stored of it, the project's own format
``facts``            what is said of an export in its JSON file, and where its backbone comes from
``loader``           attaching an export to a freshly loaded backbone
``heads``            the task head in files of its own
``merge``            edits folded into the weights of a backbone
``mean_pooled``      the classifier whose file stands beside merged weights
``peft_format``      the configurations that peft can express
``predictors``       what labels or writes with an export of any form
``agreement``        whether an export computes what the trial computes
===================  ============================================================================
"""

from trial_runner.export.facts import BackboneFacts
from trial_runner.export.heads import load_head
from trial_runner.export.loader import LoadedDelta, load_delta, open_delta
from trial_runner.export.merge import merge, write_merged
from trial_runner.export.peft_format import inexpressible, write_peft
from trial_runner.export.trained import TrainedDelta, trained_delta, write_delta, write_facts
from trial_runner.files import new_folder

__all__ = [
    "BackboneFacts",
    "LoadedDelta",
    "TrainedDelta",
    "inexpressible",
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
