"""What can be tried: values, rules and arithmetic of the design space. No torch, no SQL, no I/O."""
