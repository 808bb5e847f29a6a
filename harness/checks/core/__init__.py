"""Code that checks share: the subject that they measure, the findings that they report, and their process."""
