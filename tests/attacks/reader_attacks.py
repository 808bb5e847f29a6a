"""Every attack on whoever reads what a student sent: the grader's own rules, the instructor, their programs."""

from attacks.reader_pages import PAGES
from attacks.reader_programs import LOGS, PROGRAMS
from attacks.reader_texts import TEXTS
from attacks.reader_trees import TREES

ATTACKS = (*PAGES, *TEXTS, *TREES, *PROGRAMS, *LOGS)
