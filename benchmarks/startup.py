"""How long the command line takes to answer: `rooflines --help`, and `plan` from a cold interpreter.

Run it on a quiet core: python benchmarks/startup.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

RUNS = 10
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "rooflines --help": ["-m", "rooflines", "--help"],
    "rooflines speedup": [
        *("-m", "rooflines", "speedup"),
        *("--acceptance", "0.8", "--draft-length", "1..8", "--cost-ratio", "0.05"),
    ],
    "rooflines plan": [
        *(
            "-m",
            "rooflines",
            "plan",
            "--hardware",
            "h100-sxm5-80gb",
            "--target",
            "llama-3.1-70b",
            "--tp",
            "4",
        ),
        *("--drafter", "independent:llama-3.2-1b", "--acceptance", "0.8"),
        *("--draft-length", "1..8", "--batch", "1,8,64", "--context", "2048"),
    ],
}


def times_s(arguments: list[str]) -> list[float]:
    """Wall-clock time of each run, the first one (which fills the file cache) left out (s)."""
    taken = []
    for _ in range(RUNS + 1):
        start_s = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)  # noqa: S603 - this interpreter and the commands above
        taken.append(time.perf_counter() - start_s)
    return taken[1:]


def main() -> None:
    bare_s = 0.0
    for name, arguments in COMMANDS.items():
        taken = times_s(arguments)
        middle_s = statistics.median(taken)
        bare_s = bare_s or middle_s
        print(
            f"{name:20} median {middle_s:6.3f} s, fastest {min(taken):6.3f} s of {RUNS}, "
            f"{middle_s / bare_s:5.1f} x a bare interpreter"
        )


if __name__ == "__main__":
    main()
