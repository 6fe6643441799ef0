"""Launch of a study: checked, created or continued, and run by workers to its end.

::

    launch.py           launch: the whole sequence, and its warnings
    study_creation.py   the study file and the study of its name
    preparation.py      the task, the initial design, the plan of the keeper
    execution.py        workers with the time budget and the user's signals
"""
