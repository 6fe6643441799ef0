"""Draft of a study file from data."""

from studies.init.draft import Choices, draft_study, study_text
from studies.init.sources import data_source_of, save_object, slug

__all__ = ["Choices", "data_source_of", "draft_study", "save_object", "slug", "study_text"]
