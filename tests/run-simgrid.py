#!/usr/bin/env python3
"""Compares our max-min shares with SimGrid's: run-simgrid.py CASES CHECK [FIRST LAST]

CASES SEED writes a case with our ends, CHECK runs it in SimGrid. Cases with an even seed (flows of
one size that begin together) must agree within 1e-9. Where sizes and begins differ, the order of
two ends that are nearly one can depend on rounding, and what follows from it: there the bound is
0.2 %, and nine cases of ten must agree within 1e-9 as well.
"""
import concurrent.futures
import os
import re
import subprocess
import sys

LOCK_STEP = 1e-9
ROUNDING = 2e-3


def difference(cases, check, seed):
    case = subprocess.run([cases, str(seed)], check=True, capture_output=True).stdout
    done = subprocess.run([check, '--log=root.thresh:warning'], input=case, check=True,
                          capture_output=True)
    return float(re.search(rb'difference (\S+)', done.stdout).group(1))


def main():
    cases, check = sys.argv[1:3]
    cases_drawn = 50 if os.environ.get('SIM_TESTS') == 'long' else 12
    first, last = (int(x) for x in sys.argv[3:5]) if len(sys.argv) > 4 else (0, cases_drawn - 1)
    seeds = range(first, last + 1)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(zip(seeds, pool.map(lambda seed: difference(cases, check, seed), seeds)))
    wrong = [s for s, d in found.items() if d > (ROUNDING if s % 2 else LOCK_STEP)]
    odd = [d for s, d in found.items() if s % 2]
    near = sum(d <= LOCK_STEP for d in odd)
    print(f'{len(found)} cases; largest difference {max(found.values()):.3g}; '
          f'{near} of {len(odd)} uneven ones within {LOCK_STEP:g}')
    for seed in wrong:
        print(f'seed {seed}: {found[seed]:.3g}')
    return 1 if wrong or near < 0.9 * len(odd) else 0


if __name__ == '__main__':
    sys.exit(main())
