from pathlib import Path

import pytest

from grader.sandbox.mounts import hidden_paths, mounts

ROOT = Path(__file__).parents[1]


def position(words: list[str], option: str, path: Path) -> int:
    """Return where an option for this path stands."""
    return next(i for i, word in enumerate(words) if word == option and words[i + 1] == str(path))


def test_every_path_is_bound_read_only() -> None:
    words = mounts([ROOT / "harness"], ())
    assert set(words) & {"--bind", "--dev-bind", "--bind-try"} == set()
    position(words, "--ro-bind", ROOT / "harness")


def test_a_hidden_folder_in_a_visible_one_is_empty_but_for_what_is_visible_in_it(tmp_path: Path) -> None:
    suite, hidden, inside = tmp_path, tmp_path / "grader", tmp_path / "grader" / "inside"
    inside.mkdir(parents=True)
    words = mounts([inside, suite], [hidden])
    order = [position(words, "--ro-bind", suite), position(words, "--tmpfs", hidden)]
    order += [position(words, "--ro-bind", inside), position(words, "--remount-ro", hidden)]
    assert order == sorted(order)


def test_a_hidden_folder_that_nobody_would_see_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "shown").mkdir()
    words = mounts([tmp_path / "shown"], [tmp_path / "home", tmp_path / "shown" / "missing"])
    assert "--tmpfs" not in words


def test_the_solutions_the_grader_and_the_home_folder_are_hidden() -> None:
    assert {ROOT / "grader", ROOT / "solutions", ROOT / "submissions", Path.home()} <= set(hidden_paths())


def test_somebody_without_a_home_has_none_to_hide(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    assert ROOT / "solutions" in hidden_paths()
