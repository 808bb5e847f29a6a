"""The connection to the scheduler of a cluster."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from distributed import Client

from harness.errors import UserError

TIMEOUT_SECONDS = 10


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """Give a client of the scheduler at an address (tcp://host:8786); Dask's own configuration says how TLS is done.

    Raises `UserError` where nobody answers within 10 seconds.
    """
    # What it says of a lost connection, we say in a sentence.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    try:
        client = Client(address, timeout=TIMEOUT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise UserError(
            f"There is no scheduler of Dask that answers at {address} ({reason}): start one (dask scheduler), or"
            " check --cluster. Nothing was scored."
        ) from None
    try:
        yield client
    finally:
        client.close(timeout=TIMEOUT_SECONDS)


def check_connection(client: Client) -> None:
    """Raise `UserError` where the scheduler is gone."""
    if client.status != "running":
        raise lost(client)


def lost(client: Client) -> UserError:
    """Return what is raised where the scheduler is gone."""
    return UserError(
        "The connection to the scheduler was lost: see that it runs, and give the same command again; what was"
        " replayed by then is not replayed again."
    )
