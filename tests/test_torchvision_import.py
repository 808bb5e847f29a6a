import subprocess
import sys

import pytest


def _run(program: str) -> str:
    """Run a program in an interpreter of its own, where nothing was imported yet."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_pair_that_does_not_fit_together_works() -> None:
    """Also where torchvision fits: its library is kept from loading, as it is beside a CPU-only torch."""
    program = (
        "import torch\n"
        "def refuse(path): raise OSError('undefined symbol')\n"
        "torch.ops.load_library = refuse\n"
        "try:\n"
        "    import torchvision\n"
        "except RuntimeError as error:\n"
        "    print(error)\n"
        "from harness.data.torchvision_import import import_torchvision_datasets\n"
        "print(import_torchvision_datasets().MNIST.__name__)\n"
    )
    assert _run(program).splitlines() == ["operator torchvision::nms does not exist", "MNIST"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("datasets = None", "0 definitions"),
        ("raise RuntimeError('some other fault')", "some other fault"),
        ("import a_module_that_is_not_there", "No module named 'a_module_that_is_not_there'"),
    ],
)
def test_where_the_import_works_or_fails_otherwise_nothing_is_changed(
    source: str, expected: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("stand_in")
    (folder / "torchvision" / "datasets").mkdir(parents=True)
    (folder / "torchvision" / "__init__.py").write_text(source)
    (folder / "torchvision" / "datasets" / "__init__.py").touch()
    program = (
        f"import sys; sys.path.insert(0, {str(folder)!r})\n"
        "import harness.data.torchvision_import as module\n"
        "try:\n"
        "    module.import_torchvision_datasets()\n"
        "except Exception as error:\n"
        "    print(error)\n"
        "else:\n"
        "    print(len(module._definitions), 'definitions')\n"
    )
    assert _run(program) == expected


def test_without_torchvision_the_user_is_told_what_to_do() -> None:
    program = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'torchvision':\n"
        "            raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "from harness.errors import UserError\n"
        "from harness.data.torchvision_import import import_torchvision_datasets\n"
        "try:\n"
        "    import_torchvision_datasets()\n"
        "except UserError as error:\n"
        "    print(error)\n"
    )
    said = _run(program)
    assert "is not installed" in said
    assert "pip install torchvision" in said
