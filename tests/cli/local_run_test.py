"""`holdfast run --local` beside `holdfast simulate`: the same plans, the same blocks from the same
sources, the same events of the catalog at each worker; and a source that is killed.

usage: local_run_test.py HOLDFAST SCENARIOS
"""

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path


def run(*arguments, status=0):
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == status, f"{arguments}: status {done.returncode}\n{done.stderr}"
    return done


def simulated(holdfast, scenario):
    with tempfile.TemporaryDirectory() as folder:
        run(holdfast, "simulate", scenario, "--trace", "block", "--out", folder)
        summary = json.loads(Path(folder, "summary.json").read_text(encoding="utf-8"))
        lines = Path(folder, "events.jsonl").read_text(encoding="utf-8").splitlines()
    deliveries, events = set(), defaultdict(list)
    update = 0
    for event in map(json.loads, lines):
        # Each update of this scenario begins with the trainers' publish.
        if event["event"] == "call" and event["message"].startswith("publish"):
            update = int(event["message"].split(":")[0].split(".")[1])
        if event["event"] == "block":
            deliveries.add((update, event["worker"], event["block"], event["source"]))
        elif event["event"] in ("call", "runs"):
            events[event["worker"]].append((event["event"], event["message"]))
    return summary["runs"][0]["workload"]["plans"], deliveries, events


def executed(holdfast, scenario):
    done = run(holdfast, "run", scenario, "--local", "--json", "--deliveries")
    answer = json.loads(done.stdout)
    assert answer["failure"] is None
    assert answer["repeated_blocks"] == 0
    assert len(answer["verified"]) == 3 * len(answer["updates"]), answer["verified"]
    events = defaultdict(list)
    for event in answer["events"]:
        events[event["worker"]].append((event["event"], event["message"]))
    return answer["plans"], {tuple(d) for d in answer["deliveries"]}, events


def main():
    holdfast, scenarios = sys.argv[1:]
    scenario = str(Path(scenarios, "local-8-workers.yaml"))
    plans, deliveries, events = simulated(holdfast, scenario)
    real_plans, real_deliveries, real_events = executed(holdfast, scenario)
    assert plans and plans == real_plans, f"plans {plans} and {real_plans}"
    assert deliveries and deliveries == real_deliveries, (
        f"{len(deliveries - real_deliveries)} deliveries only simulated, "
        f"{len(real_deliveries - deliveries)} only real")
    assert events.keys() == real_events.keys()
    for worker, seen in events.items():
        assert seen == real_events[worker], f"{worker}: {seen} and {real_events[worker]}"

    killed = run(holdfast, "run", str(Path(scenarios, "local-source-dies.yaml")), "--local",
                 "--json")
    answer = json.loads(killed.stdout)
    assert answer["killed"] == ["h0.gpu0"], answer["killed"]
    assert answer["failure"] is None
    # The update in which it happens, and the next one from the trainer that is left.
    assert answer["verified"] == ["rollout[0]", "rollout[1]"] * 2, answer["verified"]
    assert answer["repeated_blocks"] == 0

    refused = run(holdfast, "run", str(Path(scenarios, "update-1024-gpus.yaml")), "--local", status=2)
    assert "at most 64" in refused.stderr, refused.stderr
    refused = run(holdfast, "run", scenario, status=2)
    assert "--local" in refused.stderr, refused.stderr
    print("ok")


if __name__ == "__main__":
    main()
