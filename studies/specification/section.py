"""What every section of a study file is."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A mapping of the study file: unknown keys are refused, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)
