#!/usr/bin/env python3
"""Reads a memory snapshot with Python's pickle, as PyTorch's viewer does, and checks that its fields are
there and agree with each other and with what the run printed.
Usage: test-memory-snapshot.py SIM"""
import json
import pickle
import subprocess
import sys
import tempfile

SCENARIO = {
    "schema_version": 1, "name": "s",
    "model": {"name": "llama", "device": "a100", "precision": "bf16", "batch_size": 4,
              "granularity": "block",
              "parameters": {"layers": 4, "hidden": 512, "heads": 8, "kv_heads": 4, "head": 64,
                             "sequence": 1024, "vocabulary": 8192, "intermediate": 1536}},
    "platform": {"topology": "dgx-a100", "devices": 2},
    "schedule": {"kind": "1f1b", "micro_batches": 4, "partition": [3]},
}


def run(sim, folder, *options):
    with open(folder + "/s.json", "w") as f:
        json.dump(SCENARIO, f)
    done = subprocess.run([sim, "run", folder + "/s.json", "--no-output", "--json", *options],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["devices"]


def sizes(segments, key):
    return sum(s[key] for s in segments)


def check(snapshot, reserved):
    segments = snapshot["segments"]
    for s in segments:
        blocks = s["blocks"]
        assert s["device"] == 0 and s["segment_type"] in ("small", "large"), s
        assert sum(b["size"] for b in blocks) == s["total_size"], s
        active = [b for b in blocks if b["state"] == "active_allocated"]
        assert sum(b["size"] for b in active) == s["allocated_size"], s
        at = s["address"]
        for b in blocks:
            assert b["address"] == at and b["requested_size"] <= b["size"], b
            at += b["size"]
        assert all(b["frames"][0]["name"] for b in active), "blocks say what they are for"
    assert sizes(segments, "total_size") == reserved, (sizes(segments, "total_size"), reserved)
    # what the history allocates and does not free is what there is
    live = {}
    taken = 0
    for entry in snapshot["device_traces"][0]:
        if entry["action"] == "alloc":
            live[entry["addr"]] = entry["size"]
        elif entry["action"] == "free_requested":
            assert live.pop(entry["addr"]) == entry["size"]
        elif entry["action"] in ("segment_alloc", "segment_map"):
            taken += entry["size"]
        elif entry["action"] in ("segment_free", "segment_unmap"):
            taken -= entry["size"]
    there = {b["address"]: b["requested_size"] for s in segments for b in s["blocks"]
             if b["state"] == "active_allocated"}
    assert live == there, "history and segments agree"
    assert taken == reserved, (taken, reserved)


def main():
    sim = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        for extra in ([], ["-s", "/memory/expandable_segments=true"]):
            path = folder + "/m.pickle"
            devices = run(sim, folder, "--allocator", "pytorch", "--snapshot", path, *extra)
            with open(path, "rb") as f:
                snapshot = pickle.load(f)
            check(snapshot, max(d["allocator"]["peak_reserved_bytes"] for d in devices))
        # nobody who does not ask for the allocator gets its figures
        assert "allocator" not in run(sim, folder)[0]


main()
