"""A study file for data that nobody has described yet."""

from studies.init.draft import Choices, Draft, draft_study, study_text
from studies.init.sources import DataSource, source_of

__all__ = ["Choices", "DataSource", "Draft", "draft_study", "source_of", "study_text"]
