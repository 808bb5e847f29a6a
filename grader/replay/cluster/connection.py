"""The connection to the scheduler of a cluster."""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from distributed import Client, Security
from distributed.comm.core import connect

from harness.errors import UserError

TIMEOUT_SECONDS = 10


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """Give a client of the scheduler at an address (tcp://host:8786); Dask's own configuration says how TLS is done.

    Raises `UserError` where nobody answers within 10 seconds.
    """
    # What it says of a lost connection, we say in a sentence.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    security = Security()
    try:
        # Where a scheduler speaks TLS and this does not, a client would wait, and close, for minutes.
        asyncio.run(asyncio.wait_for(_knock(address, security), TIMEOUT_SECONDS))
        client = Client(address, timeout=TIMEOUT_SECONDS, security=security, set_as_default=False)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise UserError(
            f"There is no scheduler of Dask that answers at {address} ({reason}): start one (dask scheduler), or"
            " check --cluster. Nothing was scored."
        ) from None
    try:
        yield client
    finally:
        with suppress(TimeoutError):  # the scheduler is gone
            client.close(timeout=TIMEOUT_SECONDS)


async def _knock(address: str, security: Security) -> None:
    comm = await connect(address, timeout=TIMEOUT_SECONDS, **security.get_connection_args("client"))
    await comm.close()


def scheduler_info(client: Client) -> Mapping[str, Any]:
    """Return what the scheduler says of itself and of its workers. Raises `UserError` where it is gone."""
    check_connection(client)
    try:
        return client.scheduler_info(n_workers=-1)
    except OSError:
        raise _lost() from None


def check_connection(client: Client) -> None:
    """Raise `UserError` where the scheduler is gone."""
    if client.status != "running":
        raise _lost()


def _lost() -> UserError:
    return UserError(
        "The connection to the scheduler was lost: see that it runs, and give the same command again; what was"
        " replayed by then is not replayed again."
    )
