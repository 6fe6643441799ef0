"""The contract of edits: what every edit promises on every backbone, and whether it is kept on a small copy of one.

==============  ======================================================================
``proof``       what is possible on a backbone, and the table that passed the contract before it is used
``small_copy``  a small copy of it, on which the contract is tried
``trace``       what passes through the modules of a model
``derivation``  the ports that are told by that
``promises``    each promise, checked for a configuration
``examples``    the smallest edits that show what each form and each gate does
``rig``         a small frozen backbone with hooks on it, and what it is called with
==============  ======================================================================
"""
