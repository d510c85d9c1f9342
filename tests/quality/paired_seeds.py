#!/usr/bin/env python3
"""Whether one policy beats another in a scenario with a workload, seed by seed.

    tests/quality/paired_seeds.py build/release/holdfast scenarios/paper-cross-dc.yaml --seeds 10

Runs both policies with each seed, which draws the same rollouts, members and faults for both, and
prints the mean of the paired differences of a figure with its 95 % interval (Student's t).
"""

import argparse
import json
import math
import subprocess
import sys

# Two-sided 95 % quantiles of Student's t, by degrees of freedom from 1.
T95 = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
       2.145, 2.131, 2.120, 2.110, 2.101, 2.093]


def figure(holdfast, scenario, policy, seed, key):
    done = subprocess.run([holdfast, "simulate", scenario, "--policy", policy, "--seed", str(seed),
                           "--trace", "none", "--json"], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"policy {policy}, seed {seed}:\n{done.stderr}")
    return json.loads(done.stdout)["runs"][0][key]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("holdfast")
    parser.add_argument("scenario")
    parser.add_argument("--seeds", type=int, default=10, choices=range(2, len(T95) + 2))
    parser.add_argument("--ours", default="auto")
    parser.add_argument("--theirs", default="greedy")
    parser.add_argument("--figure", default="gpu_stall_s")
    given = parser.parse_args()
    differences = []
    for seed in range(1, given.seeds + 1):
        ours, theirs = (figure(given.holdfast, given.scenario, policy, seed, given.figure)
                        for policy in (given.ours, given.theirs))
        differences.append(theirs - ours)
        print(f"seed {seed}: {given.ours} {ours:.6g}, {given.theirs} {theirs:.6g}", flush=True)
    count = len(differences)
    mean = sum(differences) / count
    deviation = math.sqrt(sum((d - mean) ** 2 for d in differences) / (count - 1))
    half = T95[count - 2] * deviation / math.sqrt(count)
    print(f"{given.theirs} - {given.ours}: {mean:.6g}, 95 % interval {mean - half:.6g} to "
          f"{mean + half:.6g}")


if __name__ == "__main__":
    main()
