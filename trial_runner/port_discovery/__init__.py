"""Contract of edits: properties of every edit on every backbone, checked on a small copy of the backbone.

===================  ======================================================================
``proof``            result of the contract on a backbone, and its table of ports
``small_copy``       small copy of a backbone, on which the contract is checked
``trace``            tensors that pass through the modules of a model
``derivation``       ports that are identified by these tensors
``edit_properties``  each property, checked for a configuration
``examples``         smallest examples of each form and each gate
``rig``              small frozen backbone with hooks, and its inputs
===================  ======================================================================
"""
