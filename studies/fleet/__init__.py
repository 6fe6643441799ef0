"""Backends: who runs the workers of a study.

===============  ==============================================================
``backend``      what every backend is given and what it returns
``runners``      how a worker gets its pack runner
``inline``       one worker in this process
``tune``         workers as long-lived trials of Ray Tune, the keeper an actor
===============  ==============================================================

Importing this loads neither torch nor ray.
"""
