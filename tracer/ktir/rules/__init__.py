"""What must hold of a module whatever it computes: rules that no operation of xDSL checks by itself."""
