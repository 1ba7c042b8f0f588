#!/usr/bin/env python3
"""Two builds for different processors give the same bits: same-bits.py PROGRAM OTHER [RUNS]"""
import subprocess
import sys


def main():
    said = []
    for program in sys.argv[1:3]:
        made = subprocess.run([program, *sys.argv[3:]], capture_output=True, text=True, check=False)
        if made.returncode == 77:
            print(f'{program}: this processor has no fused multiply-add')
            return 77
        print(program, made.stdout or made.stderr, end='')
        if made.returncode != 0:
            return 1
        said.append(made.stdout)
    return said[0] != said[1]


if __name__ == '__main__':
    sys.exit(main())
