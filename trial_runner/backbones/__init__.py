"""Backbones: found by name, loaded once, frozen. Importing this loads neither torch nor transformers.

===============  =================================================================
``locate``       location and ``config.json`` of a backbone
``source``       name of a backbone, and the storage of its weights
``backbone``     frozen base model, and the language-model head
``weight_hash``  hash of its weights
``tokenizer``    its tokenizer
``embedded/``    backbone that ships with the package
===============  =================================================================
"""

from trial_runner.backbones.backbone import (
    Backbone,
    Precision,
    load_backbone,
    load_language_model,
)
from trial_runner.backbones.locate import EMBEDDED, config_of, embedded_folder, position_limit
from trial_runner.backbones.source import BackboneSource
from trial_runner.backbones.tokenizer import load_tokenizer, tokenizer_id
from trial_runner.backbones.weight_hash import weights_sha256

__all__ = [
    "EMBEDDED",
    "Backbone",
    "BackboneSource",
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
