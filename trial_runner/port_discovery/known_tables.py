"""Seeing to it that a backbone has a table of ports before it is used."""

from search_space.backbones import family_of
from trial_runner.backbones.locate import entries_of
from trial_runner.backbones.tables import is_unknown, proved_entry, refusal


def make_known(backbone: str) -> None:
    """See to it that a backbone is of a family, or has a table that passed the contract.

    Raises:
        UnsupportedBackboneError: If it cannot have one, with what fails; of a model type that transformers does not
            know, those that have one.
    """
    entries = entries_of(backbone)
    if is_unknown(entries) and proved_entry(entries) is None:
        from transformers import CONFIG_MAPPING

        from trial_runner.port_discovery.proof import proof_of

        if entries.get("model_type") not in CONFIG_MAPPING:
            family_of(entries)
        problem = proof_of(backbone).problem
        if problem is not None:
            raise refusal(str(entries.get("model_type")), problem)
