"""Describe by numbers what each function of a program does (`probes`), and compare two programs (`compare`)."""
