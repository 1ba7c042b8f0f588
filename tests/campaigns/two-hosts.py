#!/usr/bin/env python3
"""A sweep over two hosts: two-hosts.py SIM ROOT

The hosts are two network namespaces of this machine, each with a host name of its own, joined by a
pair of virtual Ethernet devices; mpirun starts its daemon on the second one through a shell script
in the place of ssh. The sweep gives the bits of one process; then its process on the second host is
killed, and --resume ends in the same file. Needs root, `ip` and mpirun; is skipped, with the
reason, where they are missing or namespaces are not allowed.
"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
# pylint: disable-next=wrong-import-position
from processes import MPI, check, digest, find, n_lines, patient, skip

SIM, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
HOSTS = ('simhost1', 'simhost2')
ADDRESSES = ('10.77.13.1', '10.77.13.2')
SWEEP = ['sweep', os.path.join(ROOT, 'scenarios/timeprest-wn.json'),
         '--vary', '/schedule/workers=2..32', '--vary', '/schedule/micro_batches=2..12']
N_POINTS = 31 * 11


def ip(*words):
    done = subprocess.run(['ip', *words], capture_output=True, text=True, check=False)
    return f'ip {" ".join(words)}: {done.stderr.strip()}' if done.returncode else ''


def make_hosts():
    steps = [('netns', 'add', host) for host in HOSTS]
    steps.append(('link', 'add', 'simveth1', 'netns', HOSTS[0], 'type', 'veth', 'peer', 'name',
                  'simveth2', 'netns', HOSTS[1]))
    for host, address, device in zip(HOSTS, ADDRESSES, ('simveth1', 'simveth2')):
        steps += [('-n', host, 'addr', 'add', address + '/24', 'dev', device),
                  ('-n', host, 'link', 'set', device, 'up'),
                  ('-n', host, 'link', 'set', 'lo', 'up')]
    for step in steps:
        said = ip(*step)
        if said:
            return said
    return ''


def on_host(host):
    """What runs the words that follow on a host."""
    return ['ip', 'netns', 'exec', host, 'unshare', '--uts', 'sh', '-c',
            f'hostname {host}; exec "$@"', 'sh']


def write_agent(folder):
    """In the place of ssh: AGENT ADDRESS WORD..."""
    path = os.path.join(folder, 'agent.sh')
    with open(path, 'w', encoding='utf-8') as file:
        file.write('#!/bin/sh\nshift\n'
                   f'exec ip netns exec {HOSTS[1]} unshare --uts sh -c "hostname {HOSTS[1]}; $*"\n')
    os.chmod(path, 0o755)
    return path


class Hosts:
    def __init__(self, folder):
        self.folder = folder
        self.mark = f'SIM_TEST_MARK={os.path.basename(folder)}'
        self.environment = {**os.environ, **MPI, 'SIM_TEST_MARK': os.path.basename(folder)}
        self.launcher = ['mpirun', '--host', ','.join(ADDRESSES),
                         '--mca', 'plm_rsh_agent', write_agent(folder),
                         '--mca', 'btl_tcp_if_include', '10.77.13.0/24',
                         '--mca', 'oob_tcp_if_include', '10.77.13.0/24', '-n', '2']

    def start(self, *words):
        return subprocess.Popen([*on_host(HOSTS[0]), *self.launcher, *words],
                                cwd=self.folder, env=self.environment, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)

    def run(self, *words):
        process = self.start(*words)
        said = process.communicate(timeout=300)[0]
        return process.returncode, said

    def second(self):
        """The process on the second host, or None."""
        found = find('OMPI_COMM_WORLD_RANK=1', self.mark)
        return found[0] if found else None


def attack(hosts, one):
    process = hosts.start(SIM, *SWEEP, '-o', 'killed.h5', '-j', '1')
    journal = os.path.join(hosts.folder, 'killed.h5.journal')
    patient(lambda: n_lines(journal) > 20 or process.poll() is not None, 60)
    pid = hosts.second()
    if pid:
        os.kill(pid, signal.SIGKILL)
    said = process.communicate(timeout=60)[0]
    print(said)
    check('mpirun says 137 when the process on the second host is killed',
          process.returncode == 137, said)
    code, said = hosts.run(SIM, *SWEEP, '-o', 'killed.h5', '--resume')
    check('--resume ends in the same file',
          code == 0 and digest(os.path.join(hosts.folder, 'killed.h5')) == one, said)


def campaign(folder):
    hosts = Hosts(folder)
    subprocess.run([SIM, *SWEEP, '-o', 'one.h5'], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    one = digest(os.path.join(folder, 'one.h5'))
    code, said = hosts.run('hostname')
    print('$ mpirun ... hostname\n' + said)
    check('a process on each host', code == 0 and sorted(said.split()) == sorted(HOSTS), said)
    code, said = hosts.run(SIM, *SWEEP, '-o', 'two.h5', '-j', '1')
    print('\n'.join(line for line in said.splitlines()
                    if line.startswith(('sim: ', 'results: ')) or 'points (' in line))
    check('the file of two hosts is that of one process, bit for bit',
          code == 0 and digest(os.path.join(folder, 'two.h5')) == one, said)
    attack(hosts, one)


def main():
    for program in ('ip', 'unshare', 'mpirun'):
        if not shutil.which(program):
            skip(f'there is no {program}')
    if os.geteuid() != 0:
        skip('network namespaces need root')
    try:
        said = make_hosts()
        if said:
            skip(said)
        with tempfile.TemporaryDirectory(prefix='sim-two-hosts-') as folder:
            campaign(folder)
    finally:
        for host in HOSTS:
            ip('netns', 'del', host)


main()
