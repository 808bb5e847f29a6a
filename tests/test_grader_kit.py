import hashlib
import json
import os
import posixpath
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import pytest
from commands import snapshot

from grader.course.kit import TEMPLATES, build_kit
from harness.errors import UserError
from harness.recipe import ROOT, KitRecipe, experiment_source, load_recipe, recipe_ids
from harness.written.exercise import FileExercise, file_exercise_ids, load_exercise

ALL = recipe_ids()
# Ordinary lines of any training program: the harness may have them, and its pages and prompts may not.
EVERYDAY = ("model.eval()", "optimizer.zero_grad()", "lr=0.1, momentum", "return inputs, labels")


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_kit(tmp_path_factory.mktemp("instructor") / "kit")


@pytest.fixture(scope="module")
def files(kit: Path) -> dict[str, bytes]:
    return snapshot(kit)


@pytest.fixture(scope="module")
def texts(files: dict[str, bytes]) -> dict[str, str]:
    return {name: data.decode() for name, data in files.items() if not name.endswith(".npz")}


@pytest.fixture(scope="module")
def python(kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an interpreter that finds the kit, and the packages installed here but not this repository."""
    folder = tmp_path_factory.mktemp("student") / ".venv"
    venv.create(folder, symlinks=True)
    packages = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    # A folder that a .pth file names is searched, but its own .pth files, with the repository, are not read.
    (packages / "kit.pth").write_text(f"{kit}\n{sysconfig.get_path('purelib')}\n")
    return folder / "bin" / "python"


def start(python: Path, *words: str, cwd: Path) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.Popen(
        [python, "-P", *words],
        cwd=cwd,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


# --- what is in it ----------------------------------------------------------------------------------------


def test_it_holds_what_students_use_and_nothing_of_the_instructors(files: dict[str, bytes]) -> None:
    exercises = {
        f"exercises/{name}/{file}" for name in ALL for file in ("PROMPT.md", "recipe.toml", "experiment.py")
    }
    answers = {name: load_exercise(name) for name in file_exercise_ids()}
    exercises |= {
        f"exercises/{name}/{file}"
        for name, exercise in answers.items()
        if isinstance(exercise, FileExercise)
        for file in ("PROMPT.md", "exercise.toml", exercise.file)
    }
    assert len(answers) >= 2
    assert {name for name in files if name.startswith("exercises/")} == exercises
    assert {name.split("/")[0] for name in files} == {
        "Makefile", "README.md", "docs", "exercises", "harness", "kit.sha256", "pyproject.toml", "tests",
    }  # fmt: skip
    pages = {
        "decision-tree.md", "determinism.md", "harness.md", "optimizers.md", "optimizers.csv", "instruments.md",
        "checklist.md", "checklist.html",
    }  # fmt: skip
    assert {name for name in files if name.startswith("docs/")} == {f"docs/{page}" for page in pages}
    assert {name for name in files if name.endswith(".npz")} == {
        "harness/data/embedded/digits.npz",
        "harness/data/embedded/shapes.npz",
    }
    kept_back = [name for name in files if re.search(r"experiments/|make_|heldout|__pycache__|/\.", name)]
    assert kept_back == []


def test_the_rest_of_the_harness_is_the_repositorys_own(files: dict[str, bytes]) -> None:
    changed = {n for n in files if n.startswith("harness/") and files[n] != (ROOT / n).read_bytes()}
    assert changed == set()
    # Whatever is imported is there.
    imported = {
        f"harness/{match.replace('.', '/')}"
        for name, data in files.items()
        if name.endswith(".py")
        for match in re.findall(r"^\s*from harness\.([\w.]+) import", data.decode(), re.MULTILINE)
    }
    assert len(imported) > 40
    assert [name for name in imported if not {f"{name}.py", f"{name}/__init__.py"} & set(files)] == []


@pytest.mark.parametrize("recipe_id", ALL)
def test_the_broken_experiment_is_written_out_and_its_recipe_tells_no_more(
    recipe_id: str, kit: Path, texts: dict[str, str]
) -> None:
    ours, theirs = load_recipe(recipe_id), load_recipe(recipe_id, kit / "exercises")
    assert isinstance(theirs, KitRecipe)
    assert theirs.broken_source() == ours.broken_source() == texts[f"exercises/{recipe_id}/experiment.py"]
    table = tomllib.loads(texts[f"exercises/{recipe_id}/recipe.toml"])
    assert set(table) == {"format_version", "title", "experiment", "dataset", "seed", "hints"}
    assert theirs.hints == ours.hints
    assert all(value == getattr(ours, key) for key, value in table.items() if key != "hints")
    with pytest.raises(UserError, match=f"The healthy {ours.experiment} is not in a student's kit: "):
        theirs.healthy_source()


def test_a_written_out_experiment_goes_with_no_key_that_tells_what_broke_it(tmp_path: Path) -> None:
    recipe = load_recipe("huge_lr").for_kit()
    (tmp_path / "mine").mkdir()
    broken = "".join(f"[[{key}]]\nfind = 'x'\n" for key in ("break", "symptom"))
    (tmp_path / "mine" / "recipe.toml").write_text(recipe + broken)
    (tmp_path / "mine" / "experiment.py").write_text("EPOCHS = 1\n")
    with pytest.raises(UserError) as error:
        load_recipe("mine", tmp_path)
    for key in ("break", "symptom"):
        assert f"{key}: Extra inputs are not permitted" in str(error.value)
    (tmp_path / "mine" / "recipe.toml").write_text(recipe)
    loaded = load_recipe("mine", tmp_path)
    assert loaded.broken_source() == "EPOCHS = 1\n"
    assert (loaded.breaks, loaded.on("mnist").symptoms, loaded.observations) == (
        (),
        (),
        (),
    )


# --- what is not ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("recipe_id", ALL)
def test_no_file_gives_the_answer_away(recipe_id: str, texts: dict[str, str]) -> None:
    recipe = load_recipe(recipe_id)
    healthy = recipe.healthy_source()
    told = [healthy, *(item.says for item in (*recipe.symptoms, *recipe.observations))]
    for name, text in texts.items():
        assert [secret for secret in told if secret in text] == [], name
        own = f"exercises/{recipe_id}/"
        if name.endswith("/experiment.py") and not name.startswith(own):
            continue  # another exercise breaks something else
        for edit in recipe.breaks:
            answers = [part for part in (edit.find.strip(), edit.replace.strip()) if part]
            if name == f"{own}experiment.py":
                answers = [edit.find] if edit.find not in edit.replace else []
            elif name.startswith("harness/"):
                answers = [part for part in answers if part not in EVERYDAY]
            assert [part for part in answers if part in text] == [], name


@pytest.mark.parametrize("recipe_id", ALL)
def test_its_hints_are_the_same_and_nobody_reads_one_in_passing(
    recipe_id: str, kit: Path, texts: dict[str, str]
) -> None:
    hints = load_recipe(recipe_id, kit / "exercises").hints
    assert hints == load_recipe(recipe_id).hints
    pages = [" ".join(text.split()) for text in texts.values()]
    assert not any(hint in page for hint in hints for page in pages)


def test_no_file_holds_what_only_a_recipe_or_a_solution_holds(texts: dict[str, str]) -> None:
    for name, text in texts.items():
        assert re.findall(r"\[\[(?:break|symptom|observation|probe|variant)\b", text) == [], name
        assert re.findall(r"\b(?:grader|solutions|benchmarks)[./]\w", text) == [], name
    lines = {
        line.strip()
        for path in (ROOT / "solutions").rglob("*.*")
        for line in path.read_text(encoding="utf-8").splitlines()
        if len(line.strip()) > 40
    }
    assert len(lines) > 100
    for name, text in texts.items():
        # The prompts are quoted in the solutions, and were the students' before.
        if not name.endswith(("PROMPT.md", "experiment.py")):
            assert lines & {line.strip() for line in text.splitlines()} == set(), name


def test_no_experiment_of_the_repository_is_in_it_unbroken(texts: dict[str, str]) -> None:
    sources = {experiment_source(load_recipe(name).experiment) for name in ALL}
    assert len(sources) == 3
    assert not sources & set(texts.values())


def test_no_held_out_image_can_be_drawn_with_it(texts: dict[str, str]) -> None:
    seeds = {
        re.findall(
            r"^SEED = (\d+)$", (ROOT / "grader" / "replay" / "heldout" / f"make_{name}.py").read_text(), re.M
        )[0]
        for name in ("digits", "shapes")
    }
    assert [name for name, text in texts.items() if any(seed in text for seed in seeds)] == []


# --- its own pages and commands ---------------------------------------------------------------------------


def rules(text: str) -> dict[str, str]:
    found = re.findall(r"^([^\s.#=:]+):(.*\n(?:\t.*\n)+)", text.partition(".PHONY")[2], re.MULTILINE)
    return dict(found)


def test_its_commands_are_the_repositorys(texts: dict[str, str]) -> None:
    ours, theirs = rules((ROOT / "Makefile").read_text()), rules(texts["Makefile"])
    assert {name for name, rule in theirs.items() if rule != ours[name]} == {"help", "test"}
    phony = re.search(r"^\.PHONY: (.*)$", texts["Makefile"], re.MULTILINE)
    assert phony
    assert set(phony[1].split()) == {name for name in theirs if not name.startswith("$")}
    common = (ROOT / "Makefile").read_text().partition("# What a person may say")[2].partition(".PHONY")[0]
    assert common in texts["Makefile"]


def test_its_pages_name_only_what_is_there(texts: dict[str, str], files: dict[str, bytes]) -> None:
    for name, text in texts.items():
        if name.endswith((".md", "Makefile")):
            assert set(re.findall(r"(?:^|`|\")make ([a-z-]+)", text, re.M)) <= set(
                rules(texts["Makefile"])
            ), name
            for target in re.findall(r"\]\((?!https?:)([^)]+)\)", text):
                assert posixpath.normpath(posixpath.join(posixpath.dirname(name), target)) in files, name


def test_its_project_file_has_the_same_pins_and_no_grader(texts: dict[str, str]) -> None:
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text())
    theirs = tomllib.loads(texts["pyproject.toml"])
    for key in ("name", "version", "requires-python", "dependencies"):
        assert theirs["project"][key] == ours["project"][key]
    assert theirs["project"]["scripts"] == {"harness": "harness.cli:main"}
    assert theirs["build-system"] == ours["build-system"]
    assert "grader" not in texts["pyproject.toml"]


# --- the tarball, and building it again -------------------------------------------------------------------


def test_the_tarball_holds_the_same_and_has_the_same_bytes_anywhere(
    kit: Path, files: dict[str, bytes], tmp_path: Path
) -> None:
    tarball = kit.with_name("kit.tar.gz")
    subprocess.run(["tar", "-xzf", tarball, "-C", tmp_path], check=True)
    assert snapshot(tmp_path / "trainwreck") == files
    build_kit(tmp_path / "another")
    assert (tmp_path / "another.tar.gz").read_bytes() == tarball.read_bytes()
    assert snapshot(tmp_path / "another") == files
    digest, name = kit.with_name("kit.tar.gz.sha256").read_text().split()
    assert (digest, name) == (hashlib.sha256(tarball.read_bytes()).hexdigest(), "kit.tar.gz")
    assert {path.name for path in kit.parent.iterdir()} == {"kit", "kit.tar.gz", "kit.tar.gz.sha256"}


def test_the_listing_names_every_file(kit: Path, files: dict[str, bytes]) -> None:
    done = subprocess.run(
        ["sha256sum", "--quiet", "-c", "kit.sha256"], cwd=kit, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert len(files["kit.sha256"].splitlines()) == len(files) - 1


def test_a_kit_is_replaced_and_anything_else_is_not(tmp_path: Path) -> None:
    out = build_kit(tmp_path / "kit")
    whole = snapshot(out)
    (out / "README.md").write_text("altered")
    (out / "docs" / "harness.md").unlink()
    assert snapshot(build_kit(out)) == whole
    (out / "work").mkdir()
    (out / "work" / "report.md").write_text("mine")
    with pytest.raises(UserError, match=r"holds work/report\.md, which is no part of a kit: move it away"):
        build_kit(out)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UserError, match="is no folder: name another place with --to"):
        build_kit(tmp_path / "file")
    (tmp_path / "link").symlink_to(tmp_path / "kit", target_is_directory=True)
    with pytest.raises(UserError, match="is no folder"):
        build_kit(tmp_path / "link")
    assert snapshot(out) == {**whole, "work/report.md": b"mine"}


# --- it works ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_made_with_it_has_the_bytes_of_one_made_here(python: Path, tmp_path: Path) -> None:
    words = ("-m", "harness.trainer", "--break", "missing_zero_grad", "--epochs", "1", "--max-steps", "5")
    started = [
        start(interpreter, *words, "--out", name, cwd=tmp_path)
        for interpreter, name in ((python, "kit"), (Path(sys.executable), "here"))
    ]
    for process in started:
        said = process.communicate(timeout=300)
        assert process.returncode == 0, said
    runs = {name: snapshot(tmp_path / name) for name in ("kit", "here")}
    assert set(runs["kit"]) == set(runs["here"])
    for name in ("metrics.log", "checkpoint.pt", "experiment.py", "inputs.json"):
        assert runs["kit"][name] == runs["here"][name]
    sources = {
        name: json.loads(run["checkpoint.pt.meta.json"])["harness_sha256"] for name, run in runs.items()
    }
    assert sources["kit"] != sources["here"]  # the kit's harness did run


def test_its_own_tests_are_of_it_and_its_commands_are_there(python: Path, kit: Path, tmp_path: Path) -> None:
    chosen = ("-k", "this_kit or listed or refused", "-p", "no:cacheprovider")
    process = start(python, "-m", "pytest", str(kit / "tests"), *chosen, cwd=tmp_path)
    said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert "3 passed, 4 deselected" in said[0]


def test_the_templates_are_all_used(files: dict[str, bytes]) -> None:
    templates = {name for name in snapshot(TEMPLATES) if "__pycache__" not in name}
    assert templates - set(files) == {"pyproject.template"}
