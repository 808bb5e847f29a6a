"""Two ranks of a distributed script on one machine without a network: a fork, and pipes in place of gloo.

A script calls `torch.distributed.init_process_group("gloo")` as ever. Here the group sends tensors through two pipes,
because a sandbox has no sockets. The sum of two numbers does not depend on their order, so the bytes are those of gloo;
`tests/test_ranks.py` compares them with `torchrun`.
"""

import json
import os
import struct
import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from harness.errors import UserError
from harness.scripts.script import RANKS

_BACKEND = "pair"
_READ_AT_ONCE = 1 << 16
# A script may read all of these. No server listens at the address.
_ENVIRONMENT = {
    "WORLD_SIZE": str(RANKS), "LOCAL_WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500",
}  # fmt: skip


class OtherRankEnded(RuntimeError):
    """Raised in a collective operation if the other rank has ended."""


class SecondRank:
    """A second process that runs the body of the context, too. It ends where the body ends.

    ranks: 1 makes no second process. tell: runs at the end of the second process; the first one gets its result, as
    JSON, in `told`.

    Both processes find their rank in the environment, as under `torchrun`. If the body raises an exception in the
    second process, the first one raises `UserError` with its message.
    """

    def __init__(self, ranks: int, tell: Callable[[], Any] = lambda: None) -> None:
        self._ranks, self._tell = ranks, tell
        self.rank = 0
        self.told: Any = None

    def __enter__(self) -> "SecondRank":
        if self._ranks == 1:
            return self
        to_first, to_second, self._report = os.pipe(), os.pipe(), os.pipe()
        sys.stdout.flush()
        self._child = os.fork()
        self.rank = 0 if self._child else 1
        reading, writing = (to_first[0], to_second[1]) if self._child else (to_second[0], to_first[1])
        for end in {*to_first, *to_second, self._report[self.rank == 0]} - {reading, writing}:
            os.close(end)
        self._ends = reading, writing
        self._environment = {name: os.environ.get(name) for name in (*_ENVIRONMENT, "RANK", "LOCAL_RANK")}
        os.environ.update(_ENVIRONMENT, RANK=str(self.rank), LOCAL_RANK=str(self.rank))
        self._initialize = dist.init_process_group
        dist.init_process_group = self._initialize_pair
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if self._ranks == 1:
            return
        if self.rank == 1:
            self._end_second(error)
        dist.init_process_group = self._initialize
        if dist.is_initialized():
            dist.destroy_process_group()
        for end in self._ends:
            os.close(end)
        for name, value in self._environment.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        with os.fdopen(self._report[0], "rb") as file:
            content = file.read()
        status = os.waitstatus_to_exitcode(os.waitpid(self._child, 0)[1])
        try:
            report = dict(json.loads(content))
        except (ValueError, TypeError):  # the script has ended the process, or has written into its pipe
            report = {"error": f"it ended with the status {status}"}
        self.told = report.get("told")
        if report.get("error") and (error is None or _is_loss(error)):
            raise UserError(f"In the second of two processes: {report['error']}") from None
        if report.get("lost") and error is None:
            raise UserError("The second of two processes still waits for the first one, which has ended.")

    def _end_second(self, error: BaseException | None) -> None:
        """Send the report, and end this process without any clean-up of the first one's."""
        try:
            lost = _is_loss(error)
            failed = isinstance(error, Exception) and not lost
            report = {"error": str(error) or type(error).__name__} if failed else {"told": self._tell(), "lost": lost}
            with os.fdopen(self._report[1], "wb") as file:
                file.write(json.dumps(report).encode())
            sys.stdout.flush()
        finally:
            os._exit(0)

    def _initialize_pair(self, *_: Any, **__: Any) -> None:
        dist.Backend.register_backend(_BACKEND, self._make_group, devices=["cpu"])
        self._initialize(_BACKEND, store=dist.HashStore(), rank=self.rank, world_size=RANKS)  # type: ignore[attr-defined]

    def _make_group(self, *_: Any) -> "_PairGroup":
        return _PairGroup(self.rank, *self._ends)


def _is_loss(error: BaseException | None) -> bool:
    """Return whether the end of the other rank has caused this exception."""
    while error is not None:
        if isinstance(error, OtherRankEnded) or OtherRankEnded.__name__ in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


class _Done(dist.Work):
    """A finished operation."""

    def __init__(self, result: Any) -> None:
        super().__init__()
        self._future: torch.futures.Future[Any] = torch.futures.Future()
        self._future.set_result(result)

    def wait(self, timeout: Any = None) -> bool:
        return True

    def is_completed(self) -> bool:
        return True

    def get_future(self) -> torch.futures.Future[Any]:
        return self._future


class _PairGroup(dist.ProcessGroup):
    """A process group of two, which reads from one pipe and writes to another."""

    def __init__(self, rank: int, reading: int, writing: int) -> None:
        super().__init__(rank, RANKS)  # type: ignore[call-arg]
        self._own, self._reading, self._writing = rank, reading, writing

    def getBackendName(self) -> str:  # noqa: N802 - the name of torch
        return _BACKEND

    @torch.no_grad()
    def allreduce(self, tensors: list[Tensor], opts: Any = None) -> _Done:  # type: ignore[override]
        for tensor in tensors:
            tensor.copy_(self._reduce_pair(tensor, opts))
        return _Done(tensors)

    allreduce_coalesced = allreduce

    @torch.no_grad()
    def reduce(self, tensors: list[Tensor], opts: Any = None) -> _Done:  # type: ignore[override]
        for tensor in tensors:
            result = self._reduce_pair(tensor, opts)
            if getattr(opts, "rootRank", 0) == self._own:
                tensor.copy_(result)
        return _Done(tensors)

    @torch.no_grad()
    def broadcast(self, tensors: list[Tensor], opts: Any = None) -> _Done:  # type: ignore[override]
        for tensor in tensors:
            other = self._swap(tensor)
            if getattr(opts, "rootRank", 0) != self._own:
                tensor.copy_(other)
        return _Done(tensors)

    @torch.no_grad()
    def allgather(self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any = None) -> _Done:  # type: ignore[override]
        for parts, tensor in zip(outputs, inputs, strict=True):
            for part, value in zip(parts, self._in_order(tensor), strict=True):
                part.copy_(value)
        return _Done(outputs)

    @torch.no_grad()
    def all_gather_single(self, output: Tensor, tensor: Tensor, opts: Any = None) -> _Done:
        output.copy_(torch.cat([part.flatten() for part in self._in_order(tensor)]).view_as(output))
        return _Done([output])

    @torch.no_grad()
    def gather(self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any = None) -> _Done:  # type: ignore[override]
        for place, tensor in enumerate(inputs):
            found = self._in_order(tensor)
            if getattr(opts, "rootRank", 0) == self._own:
                for part, value in zip(outputs[place], found, strict=True):
                    part.copy_(value)
        return _Done(outputs)

    def barrier(self, opts: Any = None) -> _Done:
        self._swap(torch.zeros(1))
        return _Done([])

    def _reduce_pair(self, tensor: Tensor, opts: Any) -> Tensor:
        operation = getattr(opts, "reduceOp", dist.ReduceOp.SUM)
        one, two = self._in_order(tensor)
        if operation == dist.ReduceOp.MAX:
            return torch.maximum(one, two)
        if operation == dist.ReduceOp.MIN:
            return torch.minimum(one, two)
        if operation == dist.ReduceOp.PRODUCT:
            return one * two
        total = one + two
        return total / RANKS if operation == dist.ReduceOp.AVG else total

    def _in_order(self, tensor: Tensor) -> tuple[Tensor, Tensor]:
        """Return the tensors of rank 0 and rank 1."""
        other = self._swap(tensor)
        return (other, tensor) if self._own else (tensor, other)

    def _swap(self, tensor: Tensor) -> Tensor:
        """Send a tensor to the other rank, and return the other rank's."""
        content = tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
        # A pipe holds 64 KiB, so one rank has to read while the other one writes.
        if self._own == 0:
            self._send(content)
            received = self._receive()
        else:
            received = self._receive()
            self._send(content)
        if len(received) != len(content):
            raise RuntimeError(
                f"the other rank sent {len(received)} bytes where this one sent {len(content)}: both must make the "
                "same calls of torch.distributed, in the same order"
            )
        return torch.frombuffer(bytearray(received), dtype=tensor.dtype).view(tensor.shape) if content else tensor

    def _send(self, content: bytes) -> None:
        left = memoryview(struct.pack("<q", len(content)) + content)
        try:
            while left:
                left = left[os.write(self._writing, left) :]
        except BrokenPipeError:
            raise OtherRankEnded("OtherRankEnded: the other process has ended") from None

    def _receive(self) -> bytes:
        (length,) = struct.unpack("<q", self._read(8))
        return self._read(length)

    def _read(self, length: int) -> bytes:
        parts = []
        while length:
            part = os.read(self._reading, min(length, _READ_AT_ONCE))
            if not part:
                raise OtherRankEnded("OtherRankEnded: the other process has ended")
            parts.append(part)
            length -= len(part)
        return b"".join(parts)
