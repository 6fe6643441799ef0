"""Arms of ``benchmarks/packs.py``, each in its own processes.

===============  ==================================================================
``setting``      common settings of the arms: device, backbone, batch, steps
``mix``          trials of many structures, sizes, insertions, gates and rates
``material``     backbone and task of a process
``alone``        arm (a): one trial in a process, with ``Trainer`` and ``peft``
``own``          arms (b) and (c): packs in the loop of this library
``meters``       time and peak memory
``wire``         messages between a process and its parent
``processes``    start of the arms and collection of their results
``rounds``       one round of all arms and its rates
``report``       printed lines
===============  ==================================================================
"""
