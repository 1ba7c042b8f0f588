"""What tests that start and end processes share: waiting, and looking for them."""
import hashlib
import os
import sys
import time

SKIPPED = 77  # what meson takes for a test that was skipped
MPI = {'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1',
       'ASAN_OPTIONS': 'detect_leaks=0'}  # what MPI does not give back is none of ours


def find(*variables):
    """Processes with all of these in their environment, like 'OMPI_COMM_WORLD_RANK=1'."""
    wanted, found = {variable.encode() for variable in variables}, []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/environ', 'rb') as file:
                has = wanted <= set(file.read().split(b'\0'))
            with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as file:
                ended = file.read().rpartition(') ')[2][0] == 'Z'
        except OSError:
            continue
        if has and not ended:
            found.append(int(pid))
    return found


def patient(condition, seconds, step=0.005):
    """Whether the condition becomes true within `seconds`."""
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(step)
    return bool(condition())


def stretched(seconds):
    """A limit of time on an idle machine, by how much longer others make processes wait here,
    now."""
    start, used, work = time.monotonic(), time.process_time(), 0.05
    while time.process_time() - used < work:
        pass
    return seconds * max(1, (time.monotonic() - start) / work)


def n_lines(path):
    """Of a file; 0 where there is none."""
    try:
        with open(path, encoding='utf-8') as file:
            return sum(1 for _ in file)
    except OSError:
        return 0


def digest(path):
    with open(path, 'rb') as file:
        return hashlib.sha256(file.read()).hexdigest()


def skip(why):
    print('skipped:', why)
    sys.exit(SKIPPED)


def check(what, condition, said=''):
    """Ends the test with the output if the condition does not hold."""
    print(('ok: ' if condition else 'FAILED: ') + what, flush=True)
    if not condition:
        print(said)
        sys.exit(1)
