"""One frozen backbone over several GPUs: each holds a part of its blocks and trains a pack of its own trials.

==========  ===================================================================
``rank``    process of one GPU, with a part of the blocks and a pack
``runner``  runner that starts the rank processes and joins their packs into one
==========  ===================================================================
"""
