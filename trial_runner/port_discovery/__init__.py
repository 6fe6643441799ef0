"""The contract of edits: what every edit promises on every backbone, and whether it is kept on a small copy of one.

=============  ======================================================================
``promises``   each promise, checked for a configuration
``examples``   the smallest edits that show what each form and each gate does
``rig``        a small frozen backbone with hooks on it, and what it is called with
``double``     passes in float64 throughout
=============  ======================================================================
"""
