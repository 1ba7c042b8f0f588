#!/usr/bin/env python3
"""Reads a memory snapshot with Python's pickle, as PyTorch's viewer does, and checks that its
fields are there and agree with each other and with the run's output; and that the results
file's segments and blocks (read with h5py, if it is there) are the same, and add up.
Usage: test-memory-snapshot.py SIM"""
import json
import pickle
import subprocess
import sys
import tempfile

try:
    import h5py
except ImportError:
    h5py = None

SCENARIO = {
    "schema_version": 1, "name": "s", "runtime": "ideal",
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
    done = subprocess.run([sim, "run", folder + "/s.json", "-o", folder + "/r.h5", "--json",
                           *options],
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


STATES = {"inactive": "free", "active_allocated": "allocated", "active_pending_free": "pending"}


def rows(file, group):
    """The rows of a table as dictionaries, coded values as words."""
    columns = {}
    for name, column in file[group].items():
        values = column[:].tolist()
        if "flag_meanings" in column.attrs:
            words = column.attrs["flag_meanings"].split()
            values = [words[value] for value in values]
        columns[name] = values
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


def check_blocks(blocks, snapshot):
    """Block by block what the snapshot says of the same moment; labels name a task where there is
    one, and else the category."""
    mine = {b["address"]: b for b in blocks}
    theirs = {b["address"]: (s, b) for s in snapshot["segments"] for b in s["blocks"]}
    assert mine.keys() == theirs.keys()
    for address, (segment, block) in theirs.items():
        b = mine[address]
        assert b["bytes"] == block["size"] and b["state"] == STATES[block["state"]], (b, block)
        assert b["segment_address"] == segment["address"] and b["stream"] == segment["stream"]
        assert b["pool"] == segment["segment_type"], (b, segment)
        if b["state"] == "free":
            assert b["category"] == "none" and b["requested"] == 0 and b["task"] == NONE, b
            continue
        assert b["requested"] == block["requested_size"], (b, block)
        label = block["frames"][0]["name"]
        assert (b["task"] == NONE) == (": " not in label), (b, label)
        if b["task"] == NONE:
            assert b["category"] == label, (b, label)


NONE = 2 ** 32 - 1


def check_kept(blocks, tasks, at):
    """What a forward that is over still holds is kept for its backward."""
    over = [b for b in blocks if b["task"] != NONE and tasks[b["task"]]["kind"] == "forward"
            and tasks[b["task"]]["end"] <= at]
    assert over, "no forward is over at the peak"
    assert {b["category"] for b in over} <= {"activations", "communication_buffers"}, over
    assert any(b["category"] == "activations" for b in over)


def check_failure(device, blocks):
    """What stood in the way: the free blocks of the pool and the stream that were asked."""
    if device["failures"] == 0:
        assert not blocks and device["failed_time"] == -1
        return
    assert sum(b["bytes"] for b in blocks) == device["failed_reserved"]
    assert sum(b["bytes"] for b in blocks if b["state"] == "allocated") == device[
        "failed_allocated"]
    pool = "small" if device["failed_bytes"] <= 2 ** 20 else "large"
    free = [b["bytes"] for b in blocks
            if b["state"] == "free" and b["pool"] == pool and b["stream"] == 0]
    assert sum(free) == device["failed_free"], (sum(free), device)
    assert max(free, default=0) == device["failed_largest"] < device["failed_bytes"]


def check_results(path, told, snapshot, fullest):
    """Segments that are there at the end of each instant add up to the memory reserved then; the
    peaks agree with the samples; blocks fill the segments of their moment."""
    with h5py.File(path) as file:
        devices, samples, segments, blocks, tasks = (
            rows(file, group) for group in ("allocator", "reserved", "segments", "blocks", "tasks"))
        makespan = int(file.attrs["makespan"])
    assert [d["peak_reserved"] for d in devices] == \
        [d["allocator"]["peak_reserved_bytes"] for d in told]
    for number in sorted({d["played_as"] for d in devices}):
        device = devices[number]
        of = [s for s in samples if s["device"] == number]
        parts = [s for s in segments if s["device"] == number]
        for sample in of:
            there = sum(s["bytes"] for s in parts
                        if s["start"] <= sample["time"] and not 0 <= s["end"] <= sample["time"])
            assert there == sample["reserved"], (sample, there)
        assert max(s["most_reserved"] for s in of) == device["peak_reserved"]
        assert max(s["most_allocated"] for s in of) == device["peak_allocated"]
        first = next(s for s in of if s["most_reserved"] == device["peak_reserved"])
        assert first["time"] == device["peak_time"]
        here = [b for b in blocks if b["device"] == number]
        at_peak = [b for b in here if b["moment"] == "peak"]
        assert sum(b["bytes"] for b in at_peak) == device["peak_reserved"]
        check_failure(device, [b for b in here if b["moment"] == "failure"])
        if number == 0 and not any(d["failures"] for d in devices):
            check_kept(at_peak, tasks, device["peak_time"] % makespan)
        if number == fullest:
            check_blocks(at_peak, snapshot)
    return devices, segments


def main():
    sim = sys.argv[1]
    expandable = ["-s", "/memory/expandable_segments=true"]
    tight = ["-s", "/platform/memory=175 MB"]
    tapes = ["-s", '/parallel={"pipeline": 2}']  # layers of a mesh say what each operator allocates
    with tempfile.TemporaryDirectory() as folder:
        for extra in ([], tapes, expandable, tight, tight + expandable):
            path = folder + "/m.pickle"
            devices = run(sim, folder, "--allocator", "pytorch", "--snapshot", path, *extra)
            with open(path, "rb") as f:
                snapshot = pickle.load(f)
            peaks = [d["allocator"]["peak_reserved_bytes"] for d in devices]
            check(snapshot, max(peaks))
            if not h5py:
                continue
            found, segments = check_results(folder + "/r.h5", devices, snapshot,
                                            peaks.index(max(peaks)))
            if tight[1] in extra:
                assert any(d["failures"] > 0 for d in found), "too much memory for this test"
                assert any(s["end"] >= 0 for s in segments), "segments are given back"
        # nobody who does not ask for the allocator gets its figures
        assert "allocator" not in run(sim, folder)[0]
        if h5py:
            with h5py.File(folder + "/r.h5") as file:
                assert not {"allocator", "reserved", "segments", "blocks"} & set(file)


main()
