"""The arms of ``benchmarks/packs.py``, each in processes of its own.

===============  ==================================================================
``setting``      what every arm shares: device, backbone, batch, steps
``mix``          the trials: many structures, sizes, insertions, gates and rates
``material``     the backbone and the task of a process
``alone``        arm (a): one trial in a process, with ``Trainer`` and ``peft``
``own``          arms (b) and (c): this library's loop and its packs
``meters``       time and peak memory
``wire``         lines between a process and its parent
``processes``    starts the arms and reads their answers
``rounds``       one round of all arms, and its rates
``tables``       what is printed
===============  ==================================================================
"""
