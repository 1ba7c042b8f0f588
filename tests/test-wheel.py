#!/usr/bin/env python3
"""The wheel of the Python package, as `pip install .` makes it: test-wheel.py ROOT CC...

Builds it, installs it into an empty virtual environment, and simulates there, without anything of
the sources and the build folder in reach. Is skipped (status 77) without meson-python, patchelf,
pip or venv, and fetches none of them.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

SKIPPED = 77
PROGRAM = '''
import json, os, sys
import clustersim
result = clustersim.run(sys.argv[1])
print(json.dumps({
    'package': clustersim.__file__, 'library': clustersim._library._c._name,
    'program': clustersim.pictures.program(), 'hash': result.hash,
    'picture': result.plot('timeline')._repr_svg_()[:1000] if len(sys.argv) > 2 else None,
}))
'''


def missing():
    for module in ('mesonpy', 'pip', 'venv', 'ensurepip'):
        try:
            __import__(module)
        except ImportError:
            return module
    return next((tool for tool in ('patchelf', 'ninja', 'meson') if not shutil.which(tool)), None)


def run(*words, **how):
    done = subprocess.run(words, text=True, capture_output=True, check=False, **how)
    if done.returncode:
        raise SystemExit(f'{" ".join(words)}:\n{done.stdout[-8000:]}{done.stderr[-4000:]}')
    return done.stdout


def check_contents(wheel, folder):
    """No file in the wheel names folders of the build, which users do not have."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        for name in names:
            for path in {folder, os.path.realpath(folder)}:
                assert os.fsencode(path) not in archive.read(name), f'{name} names {path}'
    assert not [name for name in names if '__pycache__' in name], names
    for part in ('/sim/scenarios/papers/', '/sim/facts/layers/', '/sim/plots/timeline.gp'):
        assert [name for name in names if part in name], part


def main(root, compiler):
    lacking = missing()
    if lacking:
        print('skipped: needs', lacking)
        return SKIPPED
    clean = {key: value for key, value in os.environ.items()
             if not key.startswith(('CLUSTERSIM_', 'SIM_', 'PYTHON', 'PIP_'))}
    with tempfile.TemporaryDirectory(prefix='test-wheel-') as folder:
        # meson-python leaves a file among the sources
        shutil.copytree(root, folder + '/source', symlinks=True, ignore=lambda at, names: [
            name for name in names
            if at == root and (name.startswith('build') or name in ('.git', 'out'))])
        run(sys.executable, '-m', 'pip', 'wheel', '--no-build-isolation', '--no-deps', '--no-index',
            '--wheel-dir', folder, '--config-settings=builddir=' + folder + '/build',
            '--config-settings=setup-args=-Doptimization=0', folder + '/source', cwd=folder,
            env=dict(clean, CC=' '.join(compiler)))
        wheel, = glob.glob(folder + '/*.whl')
        check_contents(wheel, folder)
        run(sys.executable, '-m', 'venv', folder + '/venv')
        python = folder + '/venv/bin/python'
        run(python, '-m', 'pip', 'install', '--no-index', '--no-deps', wheel, env=clean)
        shutil.rmtree(folder + '/build')
        shutil.rmtree(folder + '/source')
        scenario = os.path.join(root, 'scenarios/vgg16-gpipe.json')
        draws = ['picture'] if shutil.which('gnuplot') else []
        said = json.loads(run(python, '-c', PROGRAM, scenario, *draws, cwd=folder, env=clean))
        for key in ('package', 'library', 'program'):
            assert said[key].startswith(os.path.realpath(folder) + '/venv/') or \
                said[key].startswith(folder + '/venv/'), said
        command = run(said['program'], 'run', scenario, '-o', folder + '/run.h5', cwd=folder,
                      env=clean)
        assert f'hash {said["hash"]}' in command, (said, command)
        validated = run(said['program'], 'validate', '--select', 'dataset=fms-fsdp', cwd=folder,
                        env=clean)
        assert '3 runs: 1 predicted' in validated, validated
        assert not draws or '<svg' in said['picture'], said
        # the program alone: its scenarios and gnuplot programs are in the wheel
        shared = re.search(r'scenarios are in (\S+)\.\n', run(said['program'], 'help')).group(1)
        assert shared.startswith(os.path.realpath(folder) + '/venv/'), shared
        run(said['program'], 'check', shared + '/scenarios/resnet50-1f1b.json', env=clean)
        run(said['program'], 'figures', '--only', 'cdp-fig2', '-o', folder + '/figures', env=clean)
        if draws:
            run(said['program'], 'plot', folder + '/run.h5', '-o', folder + '/run.svg', env=clean)
        print(f'{os.path.basename(wheel)}, {os.path.getsize(wheel)} bytes')
    return 0


if __name__ == '__main__':
    sys.exit(main(os.path.abspath(sys.argv[1]), sys.argv[2:]))
