"""`grader selfcheck`: the suite and the grader against what they declare of themselves, with a figure for each part.

| part | what is compared |
| --- | --- |
| `seeds` | every recipe over seeds and data sets: symptoms, checks, and equal bytes in two processes |
| `healthy` | `solutions/healthy.toml`: sound experiments that must show no symptom and trip no check |
| `variants` | `solutions/<id>/variants.toml`: each fix handed in and scored, against its verdict |
| `texts` | `solutions/<id>/texts.toml`: each explanation scored by the rubric, against its label |
"""
