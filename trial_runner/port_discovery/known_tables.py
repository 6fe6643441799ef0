"""A backbone's proof by its name, and seeing to it that there is one before it is used."""

from typing import TYPE_CHECKING, Any

from search_space.backbones import family_of
from trial_runner.backbones.tables import is_unknown, keep, proved_entry, refusal

if TYPE_CHECKING:
    from trial_runner.port_discovery.proof import Proof


def proof_of(backbone: str) -> "Proof":
    """Try the contract on a small copy of a backbone, whatever was found before; what is found is kept.

    Raises:
        BackboneError: If the backbone cannot be found, or transformers cannot make a model of its config.
    """
    from trial_runner.backbones.backbone import model_without_weights
    from trial_runner.backbones.locate import entries_of, source_of
    from trial_runner.huggingface import hub_access, quiet_transformers
    from trial_runner.port_discovery.proof import prove

    entries = entries_of(backbone)

    source = source_of(backbone)

    def config() -> Any:
        from transformers import AutoConfig

        with hub_access(source), quiet_transformers():
            return AutoConfig.from_pretrained(source, trust_remote_code=False)

    def models(config: Any) -> tuple[Any, Any]:
        from transformers import MODEL_FOR_CAUSAL_LM_MAPPING

        whole = None
        if type(config) in MODEL_FOR_CAUSAL_LM_MAPPING:
            whole, _ = model_without_weights(backbone, "AutoModelForCausalLM", "eager")
        base, _ = model_without_weights(backbone, "AutoModel", "eager")
        return base, whole

    found = prove(backbone, entries, config, models)
    if found.table == "model":
        keep(entries, {"problem": found.problem, "entry": found.entry})
    return found


def make_known(backbone: str) -> None:
    """See to it that a backbone is of a family, or has a table that passed the contract.

    Raises:
        UnsupportedBackboneError: If it cannot have one, with what fails; of a model type that transformers does not
            know, those that have one.
    """
    from trial_runner.backbones.locate import entries_of

    entries = entries_of(backbone)
    if is_unknown(entries) and proved_entry(entries) is None:
        from transformers import CONFIG_MAPPING

        if entries.get("model_type") not in CONFIG_MAPPING:
            family_of(entries)
        problem = proof_of(backbone).problem
        if problem is not None:
            raise refusal(str(entries.get("model_type")), problem)
