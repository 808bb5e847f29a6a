"""Run the `grader` command as `python -m grader`."""

from grader.cli import main

main()
