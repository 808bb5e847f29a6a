"""Judges derivations: forward and backward passes in NumPy, run in the sandbox and held against autograd outside."""
