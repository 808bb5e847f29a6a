"""Attacks on the process that forks for each run: what a run has of it, of its channel, and of other runs.

They hold in a process of its own as well. As with those of `sandbox_reach.py`, each gains something outside.
"""

from attacks.sandbox_reach import Attempt, attack_making

ATTEMPTS = (
    Attempt(
        "inherited_descriptors",
        "looks for pipes, sockets and nameless files that were open where it was forked",
        """
        import os, stat
        found = []
        for number in range(3, 4096):
            try:
                about = os.fstat(number)
            except OSError:
                continue
            if stat.S_ISFIFO(about.st_mode) or stat.S_ISSOCK(about.st_mode) or about.st_nlink == 0:
                found.append((number, oct(about.st_mode)))
        return found
        """,
    ),
    Attempt(
        "report_of_the_launcher",
        "says in the launcher's name, into whatever is open, that it ended well and left good results",
        """
        import os
        ending = b"OK 0 - \\0" + b"2 metrics.log\\0{}" + b"\\0"
        written = []
        for number in range(3, 4096):
            try:
                written.append((number, os.write(number, ending)))
            except OSError:
                pass
        return written
        """,
    ),
    Attempt(
        "rights_left",
        "asks the kernel what rights it still has, and whether a filter watches it; its children too",
        """
        import ctypes, os, struct
        libc = ctypes.CDLL(None)
        def rights():
            header = ctypes.create_string_buffer(struct.pack("=Ii", 0x20080522, 0))
            data = ctypes.create_string_buffer(24)
            libc.capget(header, data)
            found = ["capability"] if data.raw.strip(bytes(1)) else []
            found += [f"bounding {number}" for number in range(64) if libc.prctl(23, number, 0, 0, 0) == 1]
            found += ["new privileges"] if libc.prctl(39, 0, 0, 0, 0) != 1 else []
            found += ["no filter"] if libc.prctl(21, 0, 0, 0, 0) != 2 else []
            return found
        child = os.fork()
        if child == 0:
            os._exit(1 if rights() else 0)
        return rights() + (["a child's"] if os.waitpid(child, 0)[1] else [])
        """,
    ),
    Attempt(
        "marks_of_other_runs",
        "leaves marks in memory and in every folder, and looks for those of runs before it",
        """
        import builtins, json, os, sys, time
        try:
            start = os.stat("/input/job.json").st_ctime
        except OSError:
            start = float("inf")
        mark = "attack-mark"
        found = []
        for owner in (builtins, json, os, sys, time):
            marks = [*getattr(owner, mark, ()), time.time()]
            setattr(owner, mark, marks)
            found += [(owner.__name__, at) for at in marks if at < start]
        marks = [*os.environ.get(mark, "").split(), str(time.time())]
        os.environ[mark] = " ".join(marks)
        found += [("environment", at) for at in marks if float(at) < start]
        for folder in (".", "/tmp", "/dev/shm", "/scratch", "/input", "/proc"):
            path = os.path.join(folder, f"{mark}-{os.getpid()}-{time.time()}")
            try:
                open(path, "w").close()
                names = [name for name in os.listdir(folder) if name.startswith(mark)]
            except OSError:
                continue
            found += [(folder, name) for name in names if float(name.rpartition("-")[2]) < start]
            if start == float("inf"):
                os.remove(path)
        return found
        """,
    ),
    Attempt(
        "processes_beside",
        "asks for a handle of every process there may be: of whoever forked it, of other runs",
        """
        import os
        found = []
        for pid in range(2, 1 << 15):
            try:
                handle = os.pidfd_open(pid)
            except OSError:
                continue
            os.close(handle)
            if pid != os.getpid():
                found.append(pid)
        return found
        """,
    ),
)

ATTACKS = (
    attack_making("every_forked_attempt",
        "tries every way to the process that forked it, and to other runs, one after another", ATTEMPTS,
        in_suite=True),
    *(attack_making(item.id, item.says, (item,), in_suite=False) for item in ATTEMPTS),
)  # fmt: skip
