"""Compares akin's dense Cholesky factorization with numpy.linalg.cholesky.

The orders are those of table 1 in Novotný, Implementation Notes for the Soft
Cosine Measure (2018). akin and NumPy take turns in processes of their own, so
that a change of the machine's speed meets both, and the least time of each
counts. `make bench-cholesky` runs it.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ORDERS = 100, 500, 1000
AIM = 2  # times as long as NumPy, at most


def run_numpy(order, seconds):
    """Prints the least time of one factorization, in nanoseconds."""
    import numpy as np  # only here, where the number of its threads is set

    upper = np.triu(np.random.default_rng(1).random((order, order)) / order, 1)
    s = upper + upper.T + np.eye(order)
    least, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter_ns()
        e = np.linalg.cholesky(s)
        least = min(least, time.perf_counter_ns() - start)
    assert np.allclose(e @ e.T, s)
    print(least)


def time_numpy(order, threads, seconds):
    env = os.environ | {name: str(threads) for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    command = [sys.executable, __file__, "--numpy", str(order), "--seconds", str(seconds)]
    return int(subprocess.run(command, check=True, env=env, stdout=subprocess.PIPE, text=True).stdout)


def time_go(binary, name, order, threads, seconds):
    command = [
        str(binary.resolve()), "-test.run=^$", f"-test.bench=^BenchmarkCholesky$/^n={order}$/^{name}$",
        f"-test.benchtime={seconds}s", f"-test.cpu={threads}",
    ]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return float(re.search(r"([0-9.]+) ns/least", out)[1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", type=Path, help="what go test -c makes of ./simmatrix/softcosine")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each turn")
    parser.add_argument("--numpy", type=int, metavar="ORDER", help=argparse.SUPPRESS)  # one turn of NumPy
    options = parser.parse_args()
    if options.numpy:
        run_numpy(options.numpy, options.seconds)
        return
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; milliseconds, the least of {options.rounds} turns")
    print(f"{'n':>5} {'threads':>7} {'NumPy':>9} {'akin':>9} {'gonum':>9} {'akin/NumPy':>10} {'gonum/NumPy':>11}", flush=True)
    worst = 0.0
    for order in ORDERS:
        for threads in sorted({1, os.cpu_count()}):
            least = {"NumPy": float("inf"), "akin": float("inf"), "gonum": float("inf")}
            for _ in range(options.rounds):
                least["NumPy"] = min(least["NumPy"], time_numpy(order, threads, options.seconds))
                for name in ("akin", "gonum"):
                    least[name] = min(least[name], time_go(options.binary, name, order, threads, options.seconds))
            akin, gonum = least["akin"] / least["NumPy"], least["gonum"] / least["NumPy"]
            worst = max(worst, akin)
            print(f"{order:5} {threads:7} " + " ".join(f"{ns / 1e6:9.3f}" for ns in least.values())
                  + f" {akin:10.2f} {gonum:11.2f}", flush=True)
    print(f"akin takes at most {worst:.2f} times as long as NumPy; the aim is {AIM}")


if __name__ == "__main__":
    main()
