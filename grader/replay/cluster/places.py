"""Places for replays in one process: many beside each other, or one that is alone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Places:
    """So many replays at a time. Who has to be alone is not overtaken while it waits for the others to end."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._free = asyncio.Semaphore(count)
        self._queue = asyncio.Lock()

    @asynccontextmanager
    async def taken(self, *, alone: bool) -> AsyncIterator[None]:
        """Hold one place, or all of them."""
        held = 0
        try:
            async with self._queue:
                while held < (self._count if alone else 1):
                    await self._free.acquire()
                    held += 1
            yield
        finally:
            for _ in range(held):
                self._free.release()
