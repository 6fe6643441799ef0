"""One frozen backbone over several GPUs: each holds a part of its blocks, and trains a pack of its own trials.

==========  ===============================================================================
``rank``    the process of a GPU: a part of the blocks, and a pack
``runner``  the processes as their owner has them, all as one runner whose pack is theirs together
==========  ===============================================================================
"""
