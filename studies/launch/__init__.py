"""A study is launched: checked, begun or continued, and run by workers to its end.

::

    launch.py       launch: one after another, and what is said before work begins
    beginning.py    the study file and the study of its name
    preparing.py    the task, what comes first, the plan of the keeper
    running.py      workers under the clock and the user's signals
"""
