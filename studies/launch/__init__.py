"""A study is launched: checked, begun or continued, and run by workers to its end.

::

    launch.py           launch: one after another, and what is said before work begins
    study_creation.py   the study file and the study of its name
    preparation.py      the task, what comes first, the plan of the keeper
    execution.py        workers under the clock and the user's signals
"""
