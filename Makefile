# One line for each verb; everything else is in the `harness` command (.venv/bin/harness --help).

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
RUN := $(VENV)/.installed
DEV := $(VENV)/.installed-dev
GRADER := $(VENV)/.installed-grader

# What a person may say: make exercise BREAK=huge_lr SEED=7 DATASET=mnist DEVICE=cuda EPOCHS=3 BATCH=32 WORK=folder
measured = $(if $(SEED),--seed "$(SEED)") $(if $(DATASET),--dataset "$(DATASET)") \
           $(if $(EPOCHS),--epochs "$(EPOCHS)") $(if $(BATCH),--batch "$(BATCH)")
options  = $(measured) $(if $(DEVICE),--device "$(DEVICE)")
work     = $(if $(WORK),--work "$(WORK)")
resume   = $(if $(RESUME),--resume)

.PHONY: help exercise exercises verify check triage watch hint submit data clean-work doctor grade demo kit selfcheck redteam faults fuzz test test-slow test-portable lint bench bench-class bench-peers

help:
	@echo "make exercise BREAK=huge_lr    make the workspace, run the broken experiment"
	@echo "make exercises                 list all exercises"
	@echo "make verify BREAK=huge_lr      run your edited experiment, compare"
	@echo "make check BREAK=huge_lr       judge what can be judged before handing in"
	@echo "make triage BREAK=huge_lr      walk the checks of the method (one by one: harness --help)"
	@echo "make watch BREAK=huge_lr       run your experiment at each save"
	@echo "make hint BREAK=huge_lr LEVEL=1   a hint, noted in what you hand in"
	@echo "make submit BREAK=huge_lr STUDENT=ada"
	@echo "make data DATASET=mnist        fetch MNIST or CIFAR-10"
	@echo "make clean-work BREAK=huge_lr  start over"
	@echo "make doctor                    is this machine in the portable class?"
	@echo ""
	@echo "make grade [SUBMISSIONS=submissions] [OUT=reports] [CLUSTER=tcp://...]   score a class"
	@echo "make demo                      a small class, made, scored and shown"
	@echo "make kit                       what to hand out to students"
	@echo "make selfcheck [SEEDS=10] [WRITE=1]   the suite and the grader against what they declare"
	@echo "make redteam [FAMILY=archive] [SANDBOX=fresh] [TOGETHER=1]   every attack on the grader"
	@echo "make faults | fuzz             kills and full disks; mutated files"
	@echo ""
	@echo "make test | test-slow | lint | bench | bench-class | bench-peers | test-portable"

$(RUN): pyproject.toml
	@$(PYTHON) -c 'import sys; assert (3, 11) <= sys.version_info[:2] < (3, 13)' || \
	  { echo "Python 3.11 or 3.12 is needed: install it, or name it with make PYTHON=..."; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { echo "python -m venv failed: install your system's venv package (python3.11-venv) and try again"; exit 2; }
	@echo "Installing into $(VENV), once ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(GRADER): $(RUN)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[grader]'
	@touch $@

$(DEV): $(RUN)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

exercise: $(RUN)
	@$(BIN)/harness exercise "$(BREAK)" $(options) $(work) $(resume)

exercises: $(RUN)
	@$(BIN)/harness exercises $(work)

verify: $(RUN)
	@$(BIN)/harness verify "$(BREAK)" $(options) $(work) $(resume)

check: $(RUN)
	@$(BIN)/harness check "$(BREAK)" $(work)

triage: $(RUN)
	@$(BIN)/harness triage "$(BREAK)" $(measured) $(work)

watch: $(RUN)
	@$(BIN)/harness watch "$(BREAK)" $(work)

hint: $(RUN)
	@$(BIN)/harness hint "$(BREAK)" $(if $(LEVEL),--level "$(LEVEL)") $(work)

submit: $(RUN)
	@$(BIN)/harness submit "$(BREAK)" $(if $(STUDENT),--student "$(STUDENT)") $(work)

data: $(RUN)
	@$(BIN)/harness fetch "$(DATASET)"

clean-work: $(RUN)
	@$(BIN)/harness clean-work "$(BREAK)" $(work) $(if $(YES),--yes)

doctor: $(RUN)
	@$(BIN)/harness doctor

# Where some submissions wait for the instructor, grader says so, and its status 1 is no failure of make's.
UNLESS_OPEN = status=$$?; [ $$status -le 1 ] || exit $$status

grade: $(GRADER)
	@$(BIN)/grader score "$(if $(SUBMISSIONS),$(SUBMISSIONS),submissions)" $(if $(OUT),--out "$(OUT)") $(if $(JOBS),--jobs "$(JOBS)") $(if $(CLUSTER),--cluster "$(CLUSTER)"); $(UNLESS_OPEN)

demo: $(GRADER)
	@$(BIN)/grader demo $(if $(JOBS),--jobs "$(JOBS)"); $(UNLESS_OPEN)

kit: $(GRADER)
	@$(BIN)/grader kit

selfcheck: $(GRADER)
	@$(BIN)/grader selfcheck --seeds "$(if $(SEEDS),$(SEEDS),10)" $(if $(JOBS),--jobs "$(JOBS)") $(if $(WRITE),--write)

# Some 400 attacks, each beside honest submissions in a class of its own, then all in one: an hour or more.
# TOGETHER=1 makes the one class alone.
redteam: $(DEV)
	@PYTHONPATH=tests $(BIN)/python -m attacks $(if $(ATTACK),--only "$(ATTACK)") $(if $(FAMILY),--family "$(FAMILY)") $(if $(SANDBOX),--sandbox "$(SANDBOX)") $(if $(TOGETHER),--together) $(if $(JOBS),--jobs "$(JOBS)")

# A hundred kills, full disks and the like, done to the real grader: about a quarter of an hour.
faults: $(DEV)
	@PYTHONPATH=tests $(BIN)/python -m faults $(if $(KILLS),--kills "$(KILLS)") $(if $(SEED),--seed "$(SEED)")

# About ten minutes on two cores; the suite looks at a hundredth of it.
fuzz: $(DEV)
	@HYPOTHESIS_PROFILE=fuzz $(BIN)/python -m pytest -n auto tests/test_fuzz_*.py

test: $(DEV)
	@$(BIN)/python -m pytest -n auto --dist loadfile -m "not slow"

# The longest tests, some ten seconds of a processor or more each: whole flows by real processes, most of them.
test-slow: $(DEV)
	@$(BIN)/python -m pytest -n auto --dist loadfile -m slow

lint: $(DEV)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench: $(DEV)
	@$(BIN)/python -m benchmarks.bench

# A course of 2,100 submissions, made and graded: half an hour on two cores, and 10 GB.
bench-class: $(DEV)
	@$(BIN)/python -m benchmarks.bench_class $(if $(STUDENTS),--students "$(STUDENTS)") $(if $(WRITE),--write)

# A quarter of an hour, and 6 GB and ten minutes the first time, to install the others; ENVS= says where.
bench-peers: $(DEV)
	@$(BIN)/python -m benchmarks.peers $(if $(ENVS),--envs "$(ENVS)") $(if $(JOBS),--jobs "$(JOBS)") $(if $(WRITE),--write)

test-portable: $(DEV)
	@$(BIN)/python -m harness.doctor.portable_check
