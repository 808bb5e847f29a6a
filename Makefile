# Each rule runs one command. To see all options of a command: .venv/bin/harness --help and .venv/bin/grader --help.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
RUN := $(VENV)/.installed

# Options: make exercise BREAK=huge_lr SEED=7 DATASET=mnist DEVICE=cuda EPOCHS=3 BATCH=32 WORK=folder RESUME=1
measured = $(if $(SEED),--seed "$(SEED)") $(if $(DATASET),--dataset "$(DATASET)") \
           $(if $(EPOCHS),--epochs "$(EPOCHS)") $(if $(BATCH),--batch "$(BATCH)")
options  = $(measured) $(if $(DEVICE),--device "$(DEVICE)")
work     = $(if $(WORK),--work "$(WORK)")
resume   = $(if $(RESUME),--resume)
guard    = $(if $(GUARDRAILS),--guardrails "$(GUARDRAILS)")

#: Work on an exercise
#:   make next                        start the next case of your level
#:   make next LEVEL=2 SKIP=1         choose a level; put the open case aside
#:   make progress                    show what you solved, and in what time
#:   make exercises                   list all exercises and your progress
#:   make serve                       practise in a browser; PORT= sets the port
#:   make exercise BREAK=huge_lr      make a workspace, run the broken experiment
#:   make exercise BREAK=mystery LEVEL=2    start a hidden, random exercise
#:   make interview                   four faults in one script, and a clock;
#:                                    SEED=, MINUTES=, AGAIN=1 draws others
#:   make interview-run               run its script; every run is kept
#:   make interview-checks            run the checks on it
#:   make interview-pause             stop the clock, or let it go on
#:   make finish                      end the interview, and see the verdict
#:   make predict BREAK=huge_lr       predict the broken run before you start it
#:   make triage BREAK=huge_lr        run nearly all checks on the experiment
#:   make verify BREAK=huge_lr        run your edit, compare with the broken run
#:   make verify BREAK=case-20342 HEALTHY=1  claim that nothing is broken
#:   make verify BREAK=case-20342 WHICH=1    name the checks that differ
#:   make watch BREAK=huge_lr         run your experiment each time you save it
#:   make reproduce BREAK=huge_lr     pack the smallest run with the symptom
#:   make history BREAK=huge_lr       list your attempts; DIFF=2 shows edit 2
#:   make hint BREAK=huge_lr LEVEL=1  get a hint; your submission counts hints
#:   make check BREAK=huge_lr         check your work before you hand it in
#:   make submit BREAK=huge_lr STUDENT=ada    write the file that you hand in
#:   make reveal BREAK=huge_lr        show the solution; your submission says so
#:   make clean-work BREAK=huge_lr    start over; moves your files aside
#:   make shell                       open a shell that finds the command harness
#:   make data DATASET=mnist          download MNIST or CIFAR-10
#:   make doctor                      test if this machine gives the known bytes
.PHONY: help next progress serve interview interview-run interview-checks interview-pause finish exercises exercise predict triage verify watch reproduce history hint check submit reveal clean-work data doctor shell
help:
	@sed -n 's/^#: \{0,1\}//p' Makefile

$(RUN): pyproject.toml
	@$(PYTHON) -c 'import sys; assert (3, 11) <= sys.version_info[:2] < (3, 13)' || \
	  { echo "Python 3.11 or 3.12 is needed: install it, or name it with make PYTHON=..."; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { echo "python -m venv failed: install your system's venv package (python3.11-venv) and try again"; exit 2; }
	@echo "Installing into $(VENV), once ..." >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@echo "Installed. To use harness commands in this shell: source $(BIN)/activate" >&2
	@touch $@

next: $(RUN)
	@$(BIN)/harness next $(work) $(if $(LEVEL),--level "$(LEVEL)") $(if $(SKIP),--skip) $(if $(STUDENT),--student "$(STUDENT)")

progress: $(RUN)
	@$(BIN)/harness progress $(work)

serve: $(RUN)
	@$(BIN)/harness serve $(work) $(if $(PORT),--port "$(PORT)")

exercises: $(RUN)
	@$(BIN)/harness exercises $(work)

exercise: $(RUN)
	@$(BIN)/harness exercise "$(BREAK)" $(options) $(work) $(resume) $(guard) $(if $(LEVEL),--level "$(LEVEL)") $(if $(STUDENT),--student "$(STUDENT)")

interview: $(RUN)
	@$(BIN)/harness interview $(work) $(if $(KIND),--kind "$(KIND)") $(if $(SEED),--seed "$(SEED)") \
	  $(if $(MINUTES),--minutes "$(MINUTES)") $(if $(AGAIN),--again)

interview-run: $(RUN)
	@$(BIN)/harness interview $(work) run

interview-checks: $(RUN)
	@$(BIN)/harness interview $(work) checks

interview-pause: $(RUN)
	@$(BIN)/harness interview $(work) pause

finish: $(RUN)
	@$(BIN)/harness interview $(work) finish

predict: $(RUN)
	@$(BIN)/harness predict "$(BREAK)" $(work) $(if $(STUDENT),--student "$(STUDENT)")

triage: $(RUN)
	@$(BIN)/harness triage "$(BREAK)" $(measured) $(work)

verify: $(RUN)
	@$(BIN)/harness verify "$(BREAK)" $(options) $(work) $(resume) $(guard) $(if $(WHICH),--which) $(if $(HEALTHY),--healthy)

watch: $(RUN)
	@$(BIN)/harness watch "$(BREAK)" $(work)

reproduce: $(RUN)
	@$(BIN)/harness reproduce "$(BREAK)" $(work) $(if $(OUT),--out "$(OUT)")

history: $(RUN)
	@$(BIN)/harness history "$(BREAK)" $(if $(DIFF),--diff "$(DIFF)") $(work)

hint: $(RUN)
	@$(BIN)/harness hint "$(BREAK)" $(if $(LEVEL),--level "$(LEVEL)") $(work)

check: $(RUN)
	@$(BIN)/harness check "$(BREAK)" $(work)

submit: $(RUN)
	@$(BIN)/harness submit "$(BREAK)" $(if $(STUDENT),--student "$(STUDENT)") $(work)

reveal: $(RUN)
	@$(BIN)/harness reveal "$(BREAK)" $(work) $(if $(YES),--yes)

clean-work: $(RUN)
	@$(BIN)/harness clean-work "$(BREAK)" $(work) $(if $(YES),--yes)

data: $(RUN)
	@$(BIN)/harness fetch "$(DATASET)"

doctor: $(RUN)
	@$(BIN)/harness doctor

shell: $(RUN)
	@PATH="$(CURDIR)/$(BIN):$$PATH" $${SHELL:-/bin/sh}

# --- for instructors and maintainers; a kit ends above this line ---

#:
#: Grade a class
#:   make grade                       score the folder submissions/; options:
#:              SUBMISSIONS= OUT= COURSE= ASSIGNMENT= RUBRIC= TIMES= JOBS= CLUSTER=
#:   make score BREAK=huge_lr         score your own workspace at home
#:   make demo                        grade a made-up course as an example
#:   make kit [COURSE= ASSIGNMENT=]   build the files that students get
#:
#: Maintain
#:   make selfcheck [SEEDS=10]        test every recipe and every known fix
#:   make trial [SET=red]             grade labelled fixes by other authors
#:   make insightless                 score a script that looks for no cause
#:   make redteam [FAMILY=archive]    run every attack on the grader
#:   make faults | fuzz               test kills, full disks | test mutated files
#:   make looks [NUMBER=20 SEED=1]    can a reader find the edits by their looks?
#:   make test-portable               compare bytes on emulated processors
#:   make test-arm                    a student's work on an emulated Arm processor
#:   make test-matrix                 test watching with other torch and Python
#:   make lint | test | test-slow     the checks that a change must pass
#:   make docs                        build the site of docs/ into site/
#:   make bench | bench-class | bench-reports | bench-checks | bench-watch
#:   make bench-faults                find the faults of public reports in scripts
#:   make bench-unharmed              compare programs with themselves under watch
#:   make gallery                     draw the pictures of docs/curves.md again
#:   make pages [PAGE=measured]       run the programs on pages, write their output
#:   make cheatsheet                  print the cheat sheet as dist/cheatsheet.pdf
#:   make dist                        build both wheels and source archives in dist/
.PHONY: grade score demo kit selfcheck trial insightless redteam faults fuzz lint test test-slow test-portable
.PHONY: test-matrix test-arm looks docs
.PHONY: bench bench-class bench-reports bench-checks bench-watch bench-faults bench-unharmed gallery pages
.PHONY: cheatsheet dist
DEV := $(VENV)/.installed-dev
SITE := $(VENV)/.installed-docs
jobs = $(if $(JOBS),--jobs "$(JOBS)")
course = $(if $(COURSE),--course "$(COURSE)") $(if $(ASSIGNMENT),--assignment "$(ASSIGNMENT)")
# grader exits with 1 if some submissions wait for the instructor. make must not report that as an error.
UNLESS_OPEN = status=$$?; [ $$status -le 1 ] || exit $$status

$(DEV): $(RUN)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

$(SITE): $(RUN)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

grade: $(RUN)
	@$(BIN)/grader score "$(or $(SUBMISSIONS),submissions)" $(if $(OUT),--out "$(OUT)") $(course) $(if $(RUBRIC),--rubric "$(RUBRIC)") $(if $(TIMES),--times "$(TIMES)") $(jobs) $(if $(CLUSTER),--cluster "$(CLUSTER)"); $(UNLESS_OPEN)

score: $(RUN)
	@$(BIN)/grader practice "$(BREAK)" $(work) $(if $(YES),--yes); $(UNLESS_OPEN)

demo: $(RUN)
	@$(BIN)/grader demo $(jobs); $(UNLESS_OPEN)

kit: $(RUN)
	@$(BIN)/grader kit $(course)

selfcheck: $(RUN)
	@$(BIN)/grader selfcheck --seeds "$(or $(SEEDS),10)" $(jobs) $(if $(WRITE),--write)

trial: $(DEV)
	@PYTHONPATH=tests $(BIN)/python -m trial $(jobs) $(if $(SET),--set "$(SET)")

# Takes about 80 minutes on two cores. ONLY="huge_lr digits_mlp" measures only these two.
insightless: $(DEV)
	@PYTHONPATH=tests $(BIN)/python -m insightless $(jobs) $(ONLY)

# Grades each attack together with honest submissions, then all attacks in one class. TOGETHER=1 skips the first part.
redteam: $(DEV)
	@PYTHONPATH=tests $(BIN)/python -m attacks $(if $(ATTACK),--only "$(ATTACK)") $(if $(FAMILY),--family "$(FAMILY)") $(if $(SANDBOX),--sandbox "$(SANDBOX)") $(if $(TOGETHER),--together) $(jobs)

# Tests the real grader with about a hundred kills, full disks and similar faults. Takes a quarter of an hour.
faults: $(DEV)
	@PYTHONPATH=tests $(BIN)/python -m faults $(if $(KILLS),--kills "$(KILLS)") $(if $(SEED),--seed "$(SEED)")

# Takes about twenty minutes on two cores. make test tries only a hundredth of these examples.
fuzz: $(DEV)
	@HYPOTHESIS_PROFILE=fuzz $(BIN)/python -m pytest -n auto tests/test_fuzz_*.py

lint: $(DEV)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

test: $(DEV)
	@$(BIN)/python -m pytest -n auto --dist loadfile -m "not slow"

test-slow: $(DEV)
	@$(BIN)/python -m pytest -n auto --dist loadfile -m slow

# A browser can read the pages from the disk, but the search in them needs a server.
docs: $(SITE)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "Built site/. To read it: $(BIN)/python -m http.server --bind 127.0.0.1 --directory site"

test-portable: $(RUN)
	@PYTHONPATH=tests $(BIN)/python -m portable_check

# Writes the folder OUT and, beside it, the key. ANSWERS=looks/answers.txt compares a reader's answers with the key.
looks: $(DEV)
	@PYTHONPATH=tests $(BIN)/python -m looks $(if $(OUT),--out "$(OUT)") $(if $(NUMBER),--number "$(NUMBER)") $(if $(SEED),--seed "$(SEED)") $(if $(ANSWERS),--answers "$(ANSWERS)")

# Needs the package index, and takes half an hour or more.
test-arm: $(DEV)
	@PYTHONPATH=tests $(BIN)/python -m arm_check

# Needs the package index. ONLY=3.11/2.4.0 tries one pair. An emulated pair takes half an hour or more.
test-matrix: $(DEV)
	@PYTHONPATH=tests $(BIN)/python -m watch_matrix $(foreach pair,$(ONLY),--only $(pair))

bench: $(DEV)
	@$(BIN)/python -m benchmarks.bench $(if $(ONLY),--only "$(ONLY)") $(if $(WRITE),--write)

# Generates and grades a class of 2,100 submissions.
bench-class: $(DEV)
	@$(BIN)/python -m benchmarks.bench_class $(if $(STUDENTS),--students "$(STUDENTS)") $(if $(WRITE),--write)

# Runs triage on public bug reports, each rebuilt as a broken and a corrected experiment. Takes about ten minutes.
bench-reports: $(DEV)
	@$(BIN)/python -m benchmarks.bench_reports $(if $(ONLY),--only "$(ONLY)") $(jobs) $(if $(WRITE),--write)

# Runs our checks on every recipe and every correct variant. Takes a quarter of an hour or more, and resumes if stopped.
bench-checks: $(DEV)
	@$(BIN)/python -m benchmarks.bench_checks $(if $(ONLY),--only "$(ONLY)") $(jobs) $(if $(WRITE),--write)

# Watches public training programs. python -m benchmarks.programs makes the folder PROGRAMS, which has them.
bench-watch: $(DEV)
	@$(BIN)/python -m benchmarks.bench_watch --programs "$(or $(PROGRAMS),programs)" $(if $(ONLY),--only "$(ONLY)") $(if $(WRITE),--write)

# Watches the scripts of public reports; with PROGRAMS=folder also public programs with injected faults; with HELD_OUT=1
# only the reports that no check was written for.
bench-faults: $(DEV)
	@$(BIN)/python -m benchmarks.bench_faults $(if $(HELD_OUT),--held-out) $(if $(PROGRAMS),--programs "$(PROGRAMS)") $(if $(ONLY),--only "$(ONLY)") $(if $(WRITE),--write)

# Runs public programs with and without the watch: weights must be equal bit for bit. Measures times and memory, too.
bench-unharmed: $(DEV)
	@$(BIN)/python -m benchmarks.bench_unharmed --programs "$(or $(PROGRAMS),programs)" $(if $(ONLY),--only "$(ONLY)") $(if $(WRITE),--write)

# Makes twelve runs of one to four seconds each.
gallery: $(RUN)
	@$(BIN)/python -m benchmarks.gallery

# Takes about five minutes. tests/test_pages.py compares.
pages: $(RUN)
	@$(BIN)/python -m benchmarks.pages $(PAGE)

# Needs Chromium. First renders the parts of optimizers.md and interview.md that show the same data.
cheatsheet: $(RUN)
	@$(BIN)/python -m grader.docs.cheatsheet --write
	@$(BIN)/python -m grader.docs.cheatsheet

# CONTRIBUTING.md says what the two wheels hold.
dist: $(DEV)
	@$(BIN)/python -m build --no-isolation
	@$(BIN)/python -m build --no-isolation --outdir dist trainwreck
