"""Draft of a study file from data."""

from studies.init.draft import Choices, draft_study, study_text
from studies.init.sources import save_object, slug, source_of

__all__ = ["Choices", "draft_study", "save_object", "slug", "source_of", "study_text"]
