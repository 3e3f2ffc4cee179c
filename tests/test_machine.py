"""The stamp says what a run was made with, and nothing about who made it where."""

import getpass
import json
import mmap
import os
import platform
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from uge_core import machine
from uge_core.machine import alive, birth


def test_stamp_has_versions_and_device() -> None:
    stamp = machine.stamp("cpu")
    assert stamp["python"] == platform.python_version()
    assert (stamp["device"], stamp["threads"]) == ("cpu", machine.cores())
    assert set(stamp["packages"]) >= {"torch", "numpy", "scikit-learn"}
    assert all(stamp["packages"].values())
    json.dumps(stamp)


def test_stamp_names_no_machine_and_no_user() -> None:
    text = json.dumps(machine.stamp("cpu")).lower()
    assert platform.node().lower() not in text
    assert f'"{getpass.getuser().lower()}"' not in text


def test_stamp_loads_nothing_heavy() -> None:
    code = "import sys; from uge_core import machine; machine.stamp(); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the setting is glibc's")
def test_freed_memory_is_kept():
    """Blocks of 64 MB come back without being zeroed anew: few page faults after the first."""
    script = """
        import resource, numpy as np
        from uge_core.machine import keep_freed_memory
        def faults():
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            for _ in range(5):
                np.ones(2**23)
            return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
        usual = faults()
        keep_freed_memory()
        faults()
        print(usual, faults())
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    usual, with_setting = map(int, done.stdout.split())
    assert with_setting < usual / 5


def test_a_process_is_alive_until_it_ends_though_nobody_waited_for_it() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        born = birth(process.pid)
        assert born and alive(process.pid, born) and born == birth(process.pid)
        assert not alive(process.pid, birth(os.getpid())), "its number was that of another process before"
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert birth(process.pid) is None and not alive(process.pid, born), "a zombie"
    assert birth(process.pid) is None and not alive(process.pid, born)


def test_a_process_of_another_user_is_alive() -> None:
    assert birth(1) is not None and alive(1, birth(1))


@pytest.mark.parametrize("pid", [0, 2**22 + 1, 10**25])
def test_numbers_of_no_process(pid: int) -> None:
    assert birth(pid) is None and not alive(pid, birth(os.getpid())) and not alive(pid, None)
    assert not alive(None, None)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="Linux")
def test_a_birth_is_the_kernels_so_that_it_stays_when_the_clock_is_set() -> None:
    assert birth(os.getpid()) == Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]


@pytest.mark.slow
def test_help_and_lists_do_not_wait_for_psutil() -> None:
    code = "import sys; from uge_core.cli.main import run; run(sys.argv[1:]); sys.exit('psutil' in sys.modules)"
    for arguments in (["--help"], ["train", "--help"]):
        subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, check=True)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux")
def test_a_peak_of_memory_is_counted_anew() -> None:
    # Not the C library's memory, which a process that trained keeps.
    with mmap.mmap(-1, 2**28) as block:
        for page in range(0, len(block), mmap.PAGESIZE):
            block[page] = 1
        peak = machine.peak_memory(reset=True)
        assert peak > len(block)
    assert 0 < machine.peak_memory(reset=True) < peak - 2**27
