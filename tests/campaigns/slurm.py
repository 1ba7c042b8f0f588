#!/usr/bin/env python3
"""The script of docs/how-to/many-machines.md under Slurm: slurm.py SIM ROOT [--short]

munged, slurmctld and two slurmd, each with one processor, run on this machine in a temporary
folder, and are stopped at the end. The page's script is submitted: its file equals the file of one
process, bit for bit. Then a job is cancelled, and a process of another one killed; the same script,
submitted again, does the rest. Needs root, slurm-wlm, munge and mpirun; is skipped, with the
reason, where they are missing.
"""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
# pylint: disable-next=wrong-import-position
from processes import MPI, check, digest, find, n_lines, patient, skip

SIM, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
SHORT = '--short' in sys.argv and os.environ.get('SIM_TESTS') != 'long'  # nothing is stopped
PROGRAMS = ('munged', 'slurmctld', 'slurmd', 'sbatch', 'scancel', 'sinfo', 'mpirun')
CONFIGURATION = '''ClusterName=local
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
KillWait=5
NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=1 State=UNKNOWN
NodeName=node2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=1 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=60 State=UP
'''


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for one in sockets:
        one.bind(('127.0.0.1', 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Slurm:
    """The daemons, in the foreground, so that they end with this process' help."""

    def __init__(self, folder):
        self.folder, self.daemons = folder, []
        self.environment = {**os.environ, **MPI, 'SLURM_CONF': os.path.join(folder, 'slurm.conf'),
                            'PATH': os.path.dirname(SIM) + ':' + os.environ['PATH']}
        os.mkdir(os.path.join(folder, 'state'))
        with open(self.environment['SLURM_CONF'], 'w', encoding='utf-8') as file:
            host = socket.gethostname().split('.')[0]
            file.write(CONFIGURATION.format(folder=folder, host=host, ports=free_ports(3)))
        with open(os.path.join(folder, 'key'), 'wb',
                  opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(os.urandom(1024))

    def daemon(self, *words):
        with open(os.path.join(self.folder, 'daemons.log'), 'ab') as log:
            self.daemons.append(subprocess.Popen(words, env=self.environment, cwd=self.folder,
                                                 stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def start(self):
        at = self.folder
        self.daemon('munged', '--foreground', f'--socket={at}/munge.socket', f'--key-file={at}/key',
                    f'--pid-file={at}/munged.pid', f'--log-file={at}/munged.log',
                    f'--seed-file={at}/seed')
        patient(lambda: os.path.exists(f'{at}/munge.socket'), 10)
        self.daemon('slurmctld', '-D')
        for node in ('node1', 'node2'):
            self.daemon('slurmd', '-D', '-N', node)
        ready = ('sinfo', '-h', '-t', 'idle', '-o', '%D')
        if not patient(lambda: self.run(*ready)[1].strip() == '2', 30):
            with open(os.path.join(at, 'daemons.log'), encoding='utf-8', errors='replace') as log:
                skip('Slurm does not start here: ' + log.read()[-1000:])

    def stop(self):
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def run(self, *words):
        done = subprocess.run(words, env=self.environment, cwd=self.folder, capture_output=True,
                              text=True, check=False, timeout=300)
        return done.returncode, done.stdout + done.stderr

    def submit(self):
        """sbatch, which does not wait: the number of the job."""
        said = self.run('sbatch', 'study.sh')[1]
        return re.fullmatch(r'Submitted batch job (\d+)\n', said).group(1)

    def log(self, job):
        with open(os.path.join(self.folder, f'study-{job}.log'), encoding='utf-8') as file:
            return file.read()

    def wait(self, job):
        patient(lambda: job not in self.run('squeue', '-h', '-o', '%i')[1].split(), 300)
        return self.log(job)

    def n_recorded(self):
        return max(n_lines(os.path.join(self.folder, 'study.h5.journal')) - 1, 0)

    def first_process(self):
        """Process 1 of the sweep."""
        return find('OMPI_COMM_WORLD_RANK=1', f'SLURM_CONF={self.environment["SLURM_CONF"]}')[0]


def page_script():
    """The first script of the page, and the study that it runs."""
    with open(os.path.join(ROOT, 'docs/how-to/many-machines.md'), encoding='utf-8') as file:
        return re.search(r'```sh\n(#!/bin/sh\n#SBATCH.*?)```', file.read(), re.S).group(1)


def attack(slurm, one, what, do):
    os.remove(os.path.join(slurm.folder, 'study.h5'))
    job = slurm.submit()
    patient(lambda: slurm.n_recorded() >= 50, 60)
    do(job)
    said = slurm.wait(job)
    n = slurm.n_recorded()
    print(said)
    written = os.path.exists(os.path.join(slurm.folder, 'study.h5'))
    check(f'{what}: {n} points are kept', n >= 50 and not written, said)
    again = slurm.wait(slurm.submit())
    check(f'{what}: the script, submitted again, ends in the same file',
          f'sim: {n} of 961 points were done before' in again
          and digest(os.path.join(slurm.folder, 'study.h5')) == one, again)


def campaign(slurm):
    folder = slurm.folder
    shutil.copy(os.path.join(ROOT, 'scenarios/timeprest-wn.json'),
                os.path.join(folder, 'study.json'))
    with open(os.path.join(folder, 'study.sh'), 'w', encoding='utf-8') as file:
        file.write(page_script())
    code, said = slurm.run(SIM, 'sweep', 'study.json', '-o', 'one.h5')
    one = digest(os.path.join(folder, 'one.h5'))
    print('$ sinfo\n' + slurm.run('sinfo')[1])
    code, said = slurm.run('sbatch', '--wait', 'study.sh')
    print('$ sbatch --wait study.sh\n' + said)
    said = slurm.log(re.search(r'job (\d+)', said).group(1))
    print('$ cat study-*.log\n' + said)
    check('the file of two nodes is that of one process, bit for bit',
          code == 0 and digest(os.path.join(folder, 'study.h5')) == one, said)
    if SHORT:
        return
    attack(slurm, one, 'scancel', lambda job: slurm.run('scancel', job))
    attack(slurm, one, 'a killed process', lambda _: os.kill(slurm.first_process(), signal.SIGKILL))


def main():
    for program in PROGRAMS:
        if not shutil.which(program):
            skip(f'there is no {program}')
    if os.geteuid() != 0:
        skip('needs root')
    with tempfile.TemporaryDirectory(prefix='sim-slurm-') as folder:
        os.chmod(folder, 0o755)
        slurm = Slurm(folder)
        try:
            slurm.start()
            campaign(slurm)
        finally:
            slurm.stop()


main()
