"""The stamp says what a run was made with, and nothing about who made it where."""

import getpass
import json
import platform
import subprocess
import sys
import textwrap

import pytest

from uge_core import machine


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
    found = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    usual, kept = map(int, found.stdout.split())
    assert kept < usual / 5
