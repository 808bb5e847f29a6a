"""Checks of scripts that need the rules of `harness.scripts.script`, such as the option `--resume`.

Each check consists of two files, like the checks of experiments with functions in the folder above.
"""
