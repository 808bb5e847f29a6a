"""Score a submission: judge the rubric items of each criterion by the evidence, and give points and reasons."""
