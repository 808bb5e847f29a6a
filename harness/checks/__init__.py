"""The instruments for each step of debugging: each measures an experiment, shows what it saw and where to look next."""
