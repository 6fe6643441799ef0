"""The arms of ``benchmarks/search.py``.

===============  ===========================================================================
``truth``        the true score of every configuration on a made-up task
``readings``     what a simulated trial measures on its way
``simulation``   one study of one sampler
===============  ===========================================================================
"""
