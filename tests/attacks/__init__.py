"""The red team: attacks on the grader, each a small generator, all run through `grader score` (`make redteam`)."""
