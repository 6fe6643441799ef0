"""A study file for data that nobody has described yet."""

from studies.drafting.draft import Choices, Draft, draft_study, study_text
from studies.drafting.sources import Source, source_of

__all__ = ["Choices", "Draft", "Source", "draft_study", "source_of", "study_text"]
