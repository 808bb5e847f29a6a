import fcntl
import os
import threading
import time

from grader.sandbox.stop import StopSignal
from grader.sandbox.streams import close_all, open_pipes, read_pipes

MIB = 2**20


def soon() -> float:
    return time.monotonic() + 10


def test_pipes_are_read_side_by_side_to_their_ends() -> None:
    reading, writing = open_pipes("one", "two")

    def write() -> None:
        for _ in range(50):  # more than both pipes hold
            os.write(writing["two"], b"b" * 10_000)
            os.write(writing["one"], b"a" * 10_000)
        os.close(writing["one"])
        os.close(writing["two"])

    thread = threading.Thread(target=write)
    thread.start()
    readings = read_pipes(reading, {"one": ("x", 10**6), "two": ("x", 10**6)}, soon())
    thread.join()
    assert readings.content == {"one": b"a" * 500_000, "two": b"b" * 500_000}
    assert (readings.timed_out, readings.overflowed) == (False, None)


def test_a_group_shares_its_room() -> None:
    reading, writing = open_pipes("one", "two", "other")
    os.write(writing["one"], b"a" * 60)
    os.write(writing["two"], b"b" * 60)
    readings = read_pipes(
        reading, {"one": ("both", 100), "two": ("both", 100), "other": ("alone", 100)}, soon()
    )
    assert readings.overflowed == "both"
    assert len(readings.content["one"]) + len(readings.content["two"]) == 100
    for descriptor in writing.values():
        os.close(descriptor)


def test_reading_stops_when_time_is_up_and_keeps_what_came() -> None:
    reading, writing = open_pipes("one")
    os.write(writing["one"], b"first")
    readings = read_pipes(reading, {"one": ("x", 100)}, time.monotonic() + 0.1)
    assert (readings.timed_out, readings.content) == (True, {"one": b"first"})
    os.close(writing["one"])


def test_a_writer_that_never_pauses_is_stopped_by_time() -> None:
    reading, writing = open_pipes("one")
    done = threading.Event()

    def write() -> None:
        try:
            while not done.is_set():
                os.write(writing["one"], b"x" * 100)
        except BrokenPipeError:
            os.close(writing["one"])

    thread = threading.Thread(target=write)
    thread.start()
    readings = read_pipes(reading, {"one": ("x", 10**10)}, time.monotonic() + 0.2)
    assert readings.timed_out
    done.set()
    thread.join()


def test_what_lay_in_the_pipes_when_time_was_up_came_in_time() -> None:
    # As where this process was stopped, with Ctrl-Z, past the end of the one that it reads from.
    reading, writing = open_pipes("one", "two")
    fcntl.fcntl(writing["one"], fcntl.F_SETPIPE_SZ, MIB)
    os.write(writing["one"], b"a" * MIB)
    os.write(writing["two"], b"b")
    close_all(writing)
    readings = read_pipes(reading, {"one": ("x", 2 * MIB), "two": ("x", 2 * MIB)}, time.monotonic() - 60)
    assert readings.content == {"one": b"a" * MIB, "two": b"b"}
    assert not readings.timed_out


def test_no_time_is_up_for_a_process_that_has_ended() -> None:
    reading, writing = open_pipes("one")
    os.write(writing["one"], b"the end, and ")

    def write() -> None:
        for _ in range(30):  # more than the pipe holds, and not at once
            os.write(writing["one"], b"x" * 10_000)
            time.sleep(0.001)
        os.close(writing["one"])

    thread = threading.Thread(target=write)
    thread.start()
    readings = read_pipes(
        reading,
        {"one": ("x", MIB)},
        time.monotonic() - 60,
        ended=lambda sizes: sizes["one"] >= len(b"the end"),
    )
    thread.join()
    assert readings.content == {"one": b"the end, and " + b"x" * 300_000}
    assert not readings.timed_out


def test_a_stop_ends_the_reading_and_keeps_what_came() -> None:
    reading, writing = open_pipes("one")
    stop = StopSignal()
    os.write(writing["one"], b"first")
    stop.set()
    readings = read_pipes(reading, {"one": ("x", 100)}, soon(), stop=stop)
    assert (readings.stopped, readings.timed_out, readings.content) == (True, False, {"one": b"first"})
    os.close(writing["one"])
