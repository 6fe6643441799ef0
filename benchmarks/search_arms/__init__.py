"""Parts of ``benchmarks/search.py``.

===============  ===========================================================================
``truth``        the true score of every configuration on a simulated task
``readings``     readings of a simulated trial
``intervals``    means with intervals
``simulation``   one study of one sampler
===============  ===========================================================================
"""
