"""Backbones: found by name, loaded once, frozen. Importing this loads neither torch nor transformers.

==============  ==================================================================
``locate``      where a backbone is, what its ``config.json`` says
``backbone``    the frozen base model, and the head that writes texts
``tokenizer``   its tokenizer
``embedded/``   the backbone that ships with the package
==============  ==================================================================
"""

from trial_runner.backbones.backbone import (
    Backbone,
    LanguageModel,
    Precision,
    load_backbone,
    load_language_model,
    weights_sha256,
)
from trial_runner.backbones.locate import EMBEDDED, config_of, embedded_folder, position_limit
from trial_runner.backbones.tokenizer import load_tokenizer, tokenizer_id

__all__ = [
    "EMBEDDED",
    "Backbone",
    "LanguageModel",
    "Precision",
    "config_of",
    "embedded_folder",
    "load_backbone",
    "load_language_model",
    "load_tokenizer",
    "position_limit",
    "tokenizer_id",
    "weights_sha256",
]
