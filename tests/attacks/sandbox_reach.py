"""Attacks that reach out of the sandbox: to the network, to files, to other processes, to the kernel.

Each body returns what it gained. Outside of the sandbox every one of them gains something
(`tests/test_attack_attempts.py` runs them there), so that none fails for a silly reason.
"""

from dataclasses import dataclass

from attacks.attack import Attack, Base, Expected
from attacks.planted import at_the_top, handed_in, source_of, telling

# The raw system call, whatever glibc makes of it: (result, error number).
_CALL = """
import ctypes, ctypes.util, os
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(x86, arm, *arguments):
    number = arm if os.uname().machine == "aarch64" else x86
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return libc.syscall(ctypes.c_long(number), *words)
"""


@dataclass(frozen=True)
class Attempt:
    """What one attack tries: `body` is that of a function that returns what it gained.

    Where `{canary}`, `{submissions}`, `{suite}` or `{machine}` stands in it, the path (or name) is put in.
    """

    id: str
    says: str
    body: str

    def code(self, base: Base, suite: str, machine: str) -> str:
        """Return the body with what the attacker knows of the grader's machine."""
        known = {
            "{canary}": str(base.canary),
            "{submissions}": str(base.submissions),
            "{suite}": suite,
            "{machine}": machine,
        }
        body = self.body
        for mark, value in known.items():
            body = body.replace(mark, value)
        return body


ATTEMPTS = (
    Attempt(
        "network_families",
        "opens a socket of every address family and type",
        """
        import socket
        made = []
        for family in range(64):
            for kind in (1, 2, 3, 5):
                for protocol in (0, 1, 17, 768):
                    try:
                        socket.socket(family, kind, protocol).close()
                        made.append((family, kind, protocol))
                    except OSError:
                        pass
        return made
        """,
    ),
    Attempt(
        "network_system_call",
        "asks the kernel for sockets directly, also by the x32 numbers that a filter may overlook",
        _CALL
        + """
        return [f for f in (1, 2, 10, 16, 17, 38, 40) if call(41, 198, f, 2, 0) >= 0]
        """.replace("\n        ", "\n"),
    ),
    Attempt(
        "home_folder",
        "reads the home folder of whoever grades, and a secret in it by its full path",
        """
        import os, pwd, sys
        found = []
        places = ["{canary}", os.path.dirname("{canary}"), os.path.expanduser("~root"), "/root", "/home"]
        places += [entry.pw_dir for entry in pwd.getpwall()]
        for place in places:
            try:
                found.append(open(place).read())
            except OSError:
                pass
            if not place.startswith(("/scratch", "/usr", "/bin", "/sbin", "/lib", "/dev", "/proc")) and place != "/":
                try:
                    # Python itself may lie in a home folder; that much is shown.
                    names = [os.path.join(place, name) for name in os.listdir(place)]
                    found += [name for name in names if not sys.base_prefix.startswith(name)]
                except OSError:
                    pass
        return found[:5]
        """,
    ),
    Attempt(
        "answers",
        "looks for the solutions, the rubric, the held-out images and the healthy experiments",
        """
        import os, sys
        import harness
        found = []
        roots = {"{suite}", os.path.dirname(os.path.dirname(os.path.abspath(harness.__file__)))}
        names = {"variants.toml", "measured.toml", "recipe.toml", "rubric.toml", "bands.toml", "digits_mlp.py",
                 "scoring.py", "notes.md", "make_digits.py", "attack.py", "HEAD"}
        for root in roots:
            for folder, inner, files in os.walk(root):
                inner[:] = [name for name in inner if name not in ("lib", "lib64", "objects")]
                for name in names & set(files):
                    try:
                        if open(os.path.join(folder, name), "rb").read(1):
                            found.append(os.path.join(folder, name))
                    except OSError:
                        pass
        return found
        """,
    ),
    Attempt(
        "other_submissions",
        "reads what others handed in",
        """
        import os
        found = []
        for folder, _, files in os.walk("{submissions}"):
            found += [open(os.path.join(folder, name), "rb").read(20) for name in files]
        return found
        """,
    ),
    Attempt(
        "environment",
        "reads the environment of the grader, its own and that of its parents",
        """
        import os
        found = [name for name in os.environ if name.startswith(("TRAINWRECK", "SSH", "AWS", "USER", "VIRTUAL"))]
        for pid in {1, os.getppid()}:
            try:
                text = open(f"/proc/{pid}/environ", "rb").read()
                found += [text] if text.strip(bytes(1)) else []
            except OSError:
                pass
        return found
        """,
    ),
    Attempt(
        "other_processes",
        "reads memory, files and arguments of every other process",
        """
        import os
        found = []
        own = os.getpid()
        for pid in [int(name) for name in os.listdir("/proc") if name.isdecimal()]:
            if pid == own:
                continue
            if pid != 1 and pid != os.getppid():
                found.append(pid)
            for name in ("mem", "environ", "maps", "auxv", "stack", "pagemap"):
                try:
                    if open(f"/proc/{pid}/{name}", "rb").read(16):
                        found.append((pid, name))
                except OSError:
                    pass
            for name in ("root", "cwd", "exe", "ns/net", "fd/0", "fd/3"):
                try:
                    found.append((pid, os.readlink(f"/proc/{pid}/{name}")))
                except OSError:
                    pass
        return found
        """,
    ),
    Attempt(
        "open_descriptors",
        "uses files that whoever started it left open",
        """
        import os
        found = []
        for number in range(3, 1024):
            try:
                path = os.readlink(f"/proc/self/fd/{number}")
            except OSError:
                continue
            if os.get_inheritable(number):
                found.append((number, path))
        return found
        """,
    ),
    Attempt(
        "writing_everywhere",
        "writes into every folder of the machine, of the grader, and of Python",
        """
        import os, sys
        import harness
        places = ["/", "/etc", "/usr/bin", "/usr/lib", "/var/tmp", "/var", "/opt", "/home", "/root", "/sys", "/run",
                  "/proc", "/input", "/dev", "{suite}", "{submissions}", os.path.dirname("{canary}"),
                  os.path.dirname(harness.__file__), os.path.dirname(os.__file__), sys.prefix, "..", "../.."]
        places += sys.path
        written = []
        for place in places:
            path = os.path.join(place, "left-by-an-attack")
            try:
                open(path, "w").close()
                os.remove(path)
                written.append(path)
            except OSError:
                pass
        own = ("/scratch/", "/tmp/", "/dev/shm/")  # and nobody else's, wherever the suite itself may lie
        return [path for path in written if not os.path.abspath(path).startswith(own)]
        """,
    ),
    Attempt(
        "kernel_files",
        "opens the switches of the kernel for writing: core pattern, sysrq, control groups, its own identity",
        """
        import glob, os
        names = ["/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sysrq-trigger",
                 "/proc/sys/vm/drop_caches", "/proc/self/oom_score_adj", "/proc/self/attr/current",
                 "/proc/1/oom_score_adj", "/proc/1/mem", *glob.glob("/sys/fs/cgroup/*.max"),
                 *glob.glob("/sys/kernel/*"), *glob.glob("/proc/sys/kernel/*")]
        opened = []
        for name in names:
            try:
                os.close(os.open(name, os.O_WRONLY))
                opened.append(name)
            except OSError:
                pass
        return opened
        """,
    ),
    Attempt(
        "devices",
        "opens and makes devices: disks, memory, terminals",
        """
        import os, stat
        found = []
        for folder, _, names in os.walk("/dev"):
            for name in names:
                if name not in ("null", "full", "random", "urandom", "stdin", "stdout", "stderr"):
                    try:
                        os.close(os.open(os.path.join(folder, name), os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY))
                        found.append(name)
                    except OSError:
                        pass
        for name, kind, major, minor in (("mem", stat.S_IFCHR, 1, 1), ("sda", stat.S_IFBLK, 8, 0),
                                         ("vda", stat.S_IFBLK, 254, 0), ("zero", stat.S_IFCHR, 1, 5)):
            try:
                os.mknod(f"attack-{name}", kind | 0o666, os.makedev(major, minor))
                os.close(os.open(f"attack-{name}", os.O_RDONLY))
                found.append(f"made {name}")
            except OSError:
                pass
            finally:
                if os.path.lexists(f"attack-{name}"):
                    os.remove(f"attack-{name}")
        return found
        """,
    ),
    Attempt(
        "terminal",
        "types into the terminal of whoever grades",
        """
        import fcntl, os, pty
        done = []
        for name in ("/dev/tty", "/dev/console", "/dev/ptmx", "/dev/pts/ptmx", "/dev/pts/0"):
            try:
                done.append((name, os.open(name, os.O_RDWR | os.O_NOCTTY)))
            except OSError:
                pass
        for number in (0, 1, 2):
            for request in (0x5412, 0x541C):
                try:
                    fcntl.ioctl(number, request, b"#")
                    done.append((number, request))
                except OSError:
                    pass
        return done
        """,
    ),
    Attempt(
        "tracing",
        "traces its parent, offers itself to be traced, and reads the memory of others",
        _CALL
        + """
        own, parent = os.getpid(), os.getppid()
        buffer = ctypes.create_string_buffer(64)
        vector = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 64)
        def in_a_child(*arguments):  # which ends with it
            child = os.fork()
            if child == 0:
                os._exit(0 if call(101, 117, *arguments) >= 0 else 1)
            return -os.waitpid(child, 0)[1]
        results = {
            "me": in_a_child(0, 0, 0, 0),
            "parent": in_a_child(0x4206, parent, 0, 0),
            "child": in_a_child(0x4206, own, 0, 0),
            "read": call(310, 270, own, ctypes.byref(vector), 1, ctypes.byref(vector), 1, 0),
            "write": call(311, 271, own, ctypes.byref(vector), 1, ctypes.byref(vector), 1, 0),
            "compare": call(312, 272, own, parent, 1, 0, 0),
        }
        return [name for name, result in results.items() if result >= 0]
        """.replace("\n        ", "\n"),
    ),
    Attempt(
        "mounts",
        "mounts, unmounts and changes its root",
        _CALL
        + """
        os.makedirs("attack-mount", exist_ok=True)
        here = os.path.abspath("attack-mount").encode()
        results = {
            "tmpfs": call(165, 40, b"none", here, b"tmpfs", 0, 0),
            "bind": call(165, 40, b"/", here, 0, 4096, 0),
            "rw": call(165, 40, 0, b"/", 0, 32 | 4096, 0),
            "proc": call(165, 40, b"proc", here, b"proc", 0, 0),
            "tree": call(428, 428, -100, b"/usr", 1),
            "open": call(430, 430, b"tmpfs", 0),
            "root": call(161, 51, here) if here.startswith(b"/scratch") else -1,
        }
        for _ in range(3):
            results["off"] = call(166, 39, here, 2)
        return [name for name, result in results.items() if result >= 0]
        """.replace("\n        ", "\n"),
    ),
    Attempt(
        "namespaces",
        "makes and enters namespaces, in which it would be root",
        _CALL
        + """
        flags = (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)
        made = []
        for flag in flags:
            for name, numbers, arguments in (
                ("unshare", (272, 97), (flag,)),
                ("clone", (56, 220), (flag | 17, 0, 0, 0, 0)),
            ):
                child = os.fork()
                if child == 0:
                    result = call(*numbers, *arguments)
                    os._exit(0 if result >= 0 else 1)
                if os.waitpid(child, 0)[1] == 0:
                    made.append((name, hex(flag)))
        for name in ("net", "mnt", "pid", "user"):
            try:
                if call(308, 268, os.open(f"/proc/1/ns/{name}", os.O_RDONLY), 0) >= 0:
                    made.append(name)
            except OSError:
                pass
        return made
        """.replace("\n        ", "\n"),
    ),
    Attempt(
        "keyrings",
        "puts a key into a keyring, where it would outlive the run, and looks for those of others",
        _CALL
        + """
        results = {
            "add": call(248, 217, b"user", b"attack", b"payload", 7, -2),
            "request": call(249, 218, b"user", b"attack", 0, -2),
            "id": call(250, 219, 0, -3, 1),
            "join": call(250, 219, 1, 0),
        }
        return [name for name, result in results.items() if result >= 0]
        """.replace("\n        ", "\n"),
    ),
    Attempt(
        "kernel_surface",
        "asks for io_uring, BPF, performance counters, page faults and handles of files",
        _CALL
        + """
        room = ctypes.create_string_buffer(256)
        table = ctypes.create_string_buffer(bytes([1, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 1, 0]), 72)
        handle = ctypes.create_string_buffer(256)
        handle[0] = 128
        mount = ctypes.c_int()
        results = {
            "io_uring": call(425, 425, 4, room),
            "bpf": call(321, 280, 0, table, 72),
            "userfaultfd": call(323, 282, 1),
            "handle": call(303, 264, -100, b"/usr", handle, ctypes.byref(mount), 0),
            "fanotify": call(300, 262, 0x200, 0),
            "syslog": call(103, 116, 10, 0, 0),
            "personality": call(135, 92, 0x0040000),
        }
        return [name for name, result in results.items() if result >= 0]
        """.replace("\n        ", "\n"),
    ),
    Attempt(
        "unlimited_memory",
        "makes memory that no limit counts: shared, nameless, of System V, of message queues",
        _CALL
        + """
        import mmap
        made = []
        try:
            mmap.mmap(-1, 1 << 20)
            made.append("shared")
        except OSError:
            pass
        if call(319, 279, b"attack", 0) >= 0:
            made.append("memfd")
        shared = call(29, 194, 0, 1 << 20, 0o1666)
        if shared >= 0:
            made.append("System V")
            call(31, 195, shared, 0, 0)
        queue = call(68, 186, 0, 0o1666)
        if queue >= 0:
            made.append("messages")
            call(71, 187, queue, 0, 0)
        return made
        """.replace("\n        ", "\n"),
    ),
    Attempt(
        "becoming_root",
        "asks for rights: user 0, capabilities, programs with the bit of another user",
        """
        import os, resource, subprocess
        gained = []
        for name, attempt in (
            ("user", lambda: os.setresuid(0, 0, 0)),
            ("group", lambda: os.setgroups([0])),
            ("nice", lambda: os.setpriority(os.PRIO_PROCESS, 0, -5)),
            ("core", lambda: resource.setrlimit(resource.RLIMIT_CORE, (1 << 30, 1 << 30))),
            ("files", lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 19, 1 << 19))),
            ("limit of 1", lambda: resource.prlimit(1, resource.RLIMIT_CORE)),
            ("su", lambda: subprocess.run(["su", "-c", "true"], check=True, capture_output=True, timeout=5)),
        ):
            try:
                attempt()
                gained.append(name)
            except (OSError, ValueError, subprocess.SubprocessError):
                pass
        return gained
        """,
    ),
    Attempt(
        "who_is_there",
        "asks for the name of the machine, its users and its disks",
        """
        import os
        found = [os.uname().nodename] if os.uname().nodename == "{machine}" else []
        for name in ("/etc/hostname", "/etc/shadow", "/etc/hosts", "/etc/ssh", "/etc/machine-id", "/etc/resolv.conf",
                     "/sys/class/net", "/sys/block", "/sys/class/dmi", "/var/log"):
            if os.path.exists(name):
                found.append(name)
        return found
        """,
    ),
    Attempt(
        "signals_upwards",
        "stops and kills the process that started it",
        """
        import os, signal
        gone = []
        for pid in {1, os.getppid()}:
            for number in (signal.SIGCONT, signal.SIGURG):
                try:
                    os.kill(pid, number)
                except OSError:
                    continue
            state = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0]
            if pid == 1 and os.getppid() == 1:
                for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV):
                    os.kill(1, number)
                state = open("/proc/1/stat").read().rpartition(")")[2].split()[0]
                if state in "TtZX":
                    gone.append(state)
        return gone
        """,
    ),
)
# These gain nothing outside either, or may not be tried there.
NOT_OUTSIDE = frozenset({"signals_upwards"})


def attempt_source(source: str, base: Base, *attempts: Attempt) -> str:
    """Return an experiment that makes these attempts as it is loaded, and trains for one epoch if they fail."""
    import socket

    from harness.recipe import ROOT

    code = "\n".join(telling(item.code(base, str(ROOT), socket.gethostname()), item.id) for item in attempts)
    return at_the_top(source, code, epochs=1)


def attack_making(id: str, says: str, attempts: tuple[Attempt, ...], *, in_suite: bool) -> Attack:
    """Return the attack that makes these attempts, one after another."""

    def build(base: Base) -> bytes:
        source = attempt_source(source_of(base.untouched), base, *attempts)
        return handed_in(base, "untouched", source, id)

    expected = Expected(status=("graded",), because="The symptom is still there")
    return Attack(id, "sandbox", says, expected, build, in_suite=in_suite)


ATTACKS = (
    attack_making("every_attempt", "tries every way out of the sandbox, one after another", ATTEMPTS,
        in_suite=True),
    *(attack_making(item.id, item.says, (item,), in_suite=False) for item in ATTEMPTS),
)  # fmt: skip
