"""Downloads MNIST and CIFAR-10 through torchvision, with its progress bar, or says what to do without."""

import socket
from pathlib import Path

from harness.data.torchvision_data import SOURCES
from harness.data.torchvision_import import import_torchvision_datasets
from harness.errors import UserError

_PATIENCE = 30.0  # seconds without a byte; urllib itself would wait forever

_BY_HAND = {
    "mnist": "train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, t10k-images-idx3-ubyte.gz and "
    "t10k-labels-idx1-ubyte.gz into {root}/MNIST/raw",
    "cifar10": "cifar-10-python.tar.gz into {root}",
}


def download(name: str, root: Path) -> None:
    """Download and unpack the data set `name` ("mnist" or "cifar10") into `root`; progress goes to stderr.

    Archives already there with the right digest are unpacked without a network.
    Raises UserError without a network, when the server fails, and when `root` cannot be written.
    """
    loader = getattr(import_torchvision_datasets(), SOURCES[name].class_name)
    patience = socket.getdefaulttimeout()
    socket.setdefaulttimeout(_PATIENCE)
    try:
        root.mkdir(parents=True, exist_ok=True)
        loader(str(root), download=True)
    except (OSError, RuntimeError, EOFError) as error:
        # torchvision reports each mirror on a line of its own; a message of ours is one sentence.
        reason = " ".join(str(error).split())
        raise UserError(
            f"The data set {name} could not be downloaded into {root} ({reason}): check the network and the "
            f"folder and run `make data DATASET={name}` again, or put {_BY_HAND[name].format(root=root)} "
            "and run it again."
        ) from error
    finally:
        socket.setdefaulttimeout(patience)
