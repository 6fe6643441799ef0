"""The arms of ``benchmarks/search.py``.

===============  ===========================================================================
``truth``        the true score of every configuration on a made-up task
``readings``     what a simulated trial measures on its way
``simulation``   one study of one arm
``arms``         who proposes, and where trials are compared
``rivals``       evolution and a forest with the moves of the factored sampler
``drawn``        trials that nothing has learned from
``pruning``      which of them a rule of pruning lets through
``foresight``    what a forecast of the end lets through, and the least that could be spent
``fronts``       what pruning costs where a score is to be high and a size small
``transfer``     what earlier studies of related tasks are worth
``statistics``   shares, times and differences with their intervals
``tables``       what is printed
===============  ===========================================================================
"""
