"""`make looks`: can a reader find the edit in a broken experiment by its looks alone?

Without answers, the command draws broken experiments at random, and writes them into a folder under neutral names, with
an empty file of answers. The key lies beside the folder. A reader who knows our style, but not these experiments, gets
the folder alone and writes for each file the number of a line, the name of a function, or `?`. With the filled-in file,
the command compares the answers with the key. At most one in five should be right.
"""

import argparse
import ast
import difflib
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.recipes.catalogue import load_recipe
from harness.recipes.recipe import recipe_ids

ANSWERS = "answers.txt"
QUESTION = """\
# In each of these programs, one small edit broke the training. Find it by its looks: give the number of the line, or
# the name of the function that contains it, or ? if nothing looks odd. Do not run the programs.
"""


def write_files(folder: Path, number: int, seed: int) -> Path:
    """Write broken experiments and the empty answers into a new folder, and the key beside it. Return the key's path.

    Raises `FileExistsError` if the folder exists.
    """
    recipes = [load_recipe(name) for name in random.Random(seed).sample(recipe_ids(), number)]
    folder.mkdir(parents=True)
    key: dict[str, Any] = {}
    for place, recipe in enumerate(recipes, start=1):
        name = f"{place:02}"
        broken = recipe.broken_source()
        (folder / f"{name}.py").write_text(broken, encoding="utf-8")
        lines = changed_lines(recipe.healthy_source(), broken)
        key[name] = {"recipe": recipe.id, "lines": lines, "functions": functions_at(broken, lines)}
    (folder / ANSWERS).write_text(QUESTION + "".join(f"{name} ?\n" for name in key), encoding="utf-8")
    path = key_of(folder)
    path.write_text(json.dumps(key, indent=1) + "\n", encoding="utf-8")
    return path


def key_of(folder: Path) -> Path:
    """Return the path of the key to a folder of experiments."""
    return folder.with_name(f"{folder.name}-key.json")


def changed_lines(before: str, after: str) -> list[int]:
    """Return the numbers of the lines of `after` that the edit changed or added, and of the two lines at a deletion."""
    old, new = before.splitlines(), after.splitlines()
    lines: set[int] = set()
    for kind, _, _, start, end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "delete":
            lines |= {start, start + 1}
        elif kind != "equal":
            lines |= set(range(start + 1, end + 1))
    return sorted(lines)


def functions_at(source: str, lines: Sequence[int]) -> list[str]:
    """Return the names of the functions and classes that contain one of these lines."""
    return sorted({
        node.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and any(node.lineno <= line <= (node.end_lineno or 0) for line in lines)
    })  # fmt: skip


def read_answers(path: Path) -> dict[str, str]:
    """Return {file: answer}. Raises `ValueError` for a line that is not a name of a file and an answer."""
    answers = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        words = line.split()
        if not words or line.startswith("#"):
            continue
        if len(words) != 2 or words[0] in answers:
            raise ValueError(f"{path}, line {number}: write the number of a file and one answer, such as 01 57")
        answers[words[0].removesuffix(".py")] = words[1].removesuffix("()")
    return answers


def is_right(answer: str, entry: dict[str, Any]) -> bool:
    """Return whether an answer names a changed line, or a function with a changed line.

    A method may have the name of its class before it, as in `Block.forward`.
    """
    if answer.isdecimal():
        return int(answer) in entry["lines"]
    return set(answer.split(".")) <= set(entry["functions"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files or, with --answers, print which answers are right. Return 0, or 2 for a mistake."""
    parser = argparse.ArgumentParser(prog="looks", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("looks"), help="the folder of the experiments")
    parser.add_argument("--number", type=int, default=20, help="how many experiments are drawn")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the draw")
    parser.add_argument("--answers", type=Path, help="the filled-in file of answers, which is compared with the key")
    options = parser.parse_args(arguments)
    key = key_of(options.out)
    try:
        if options.answers is None:
            write_files(options.out, options.number, options.seed)
            print(f"Wrote {options.number} broken experiments into {options.out}, and the key to {key}.")
            print(f"Next: give a reader {options.out} alone, then make looks ANSWERS={options.out / ANSWERS}")
            return 0
        entries, answers = json.loads(key.read_text(encoding="utf-8")), read_answers(options.answers)
    except FileExistsError:
        print(f"{options.out} exists: move it away, or name another folder with OUT=.", file=sys.stderr)
        return 2
    except FileNotFoundError as error:
        print(f"There is no {error.filename}: write the experiments with make looks first.", file=sys.stderr)
        return 2
    except ValueError as error:
        print(f"{error}.", file=sys.stderr)
        return 2
    found = 0
    for name, entry in entries.items():
        answer = answers.get(name, "?")
        right = is_right(answer, entry)
        found += right
        lines = ", ".join(map(str, entry["lines"]))
        print(f"{'found' if right else '-':<6} {name}  {answer:<20} {entry['recipe']}: line {lines}")
    print(f"{found} of {len(entries)} edits were found by their looks; at most {len(entries) // 5} should be.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
