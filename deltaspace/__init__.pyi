from deltaspace import errors as errors
from deltaspace.descriptions import count as count
from deltaspace.descriptions import describe as describe
from deltaspace.descriptions import methods as methods
from deltaspace.descriptions import shape_of as shape_of
from deltaspace.launch_options import launch as launch
from deltaspace.launch_options import open_study as open_study
from deltaspace.launch_options import studies as studies
from deltaspace.startup import check as check
from deltaspace.startup import init as init
from deltaspace.startup import plan as plan
from deltaspace.training import predict as predict
from deltaspace.training import train as train
from search_space.configuration import Configuration as Configuration
from search_space.edit import Edit as Edit
from search_space.published import published_method as published_method
from search_space.space.space import SearchSpace as SearchSpace
from studies.observer import Observer as Observer
from studies.study import Study as Study
from studies.study_file import Specification as Specification
from studies.trial import Trial as Trial
from trial_runner.export import load_delta as load_delta
from trial_runner.export import open_delta as open_delta

__all__: list[str]
__version__: str
