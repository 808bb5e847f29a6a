"""What a program does, function by function, in numbers: `probes` measures them, `compare` compares two programs."""
