import os
import threading
import time

from grader.sandbox.streams import open_pipes, read_pipes


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
