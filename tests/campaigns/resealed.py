#!/usr/bin/env python3
"""Changed results files and journals with correct checksums: resealed.py SIM ROOT [-n FILES]

Changes the contents of results files of every kind (lengths, types, values, names, attributes,
links, storage) and writes a correct checksum, and changes the records of journals in the same way.
sim either accepts a file or reports an error: it never crashes or hangs. Use a sim with sanitizers,
and
ASAN_OPTIONS=handle_segv=2:handle_abort=2:allow_user_segv_handler=0.
"""
import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time

try:
    import h5py
    import numpy
except ImportError:
    h5py = None

MESH = {
    'schema_version': 1,
    'name': 'mesh',
    'model': {'name': 'gpt', 'device': 'a100', 'precision': 'bf16', 'batch_size': 16,
              'optimizer': 'adam',
              'parameters': {'layers': 2, 'hidden': 64, 'heads': 4, 'sequence': 64,
                             'vocabulary': 128}},
    'platform': {'topology': 'nvlink_switch', 'devices': 4, 'bandwidth': '100 GB/s'},
    'parallel': {'data': 2, 'pipeline': 2, 'zero': 1},
    'schedule': {'kind': '1f1b', 'micro_batches': 4},
    'collectives': {'fidelity': 'analytic'},
}
SEAL = 24  # bytes: a mark, the length, XXH64
LIMIT = 120  # s of wall time
MASK = 2**64 - 1
PRIMES = (11400714785074694791, 14029467366897019727, 1609587929392839161,
          9650029242287828579, 2870177450012600261)


def rotate(value, bits):
    return (value << bits | value >> (64 - bits)) & MASK


def mix(lane, word):
    return rotate((lane + word * PRIMES[1]) & MASK, 31) * PRIMES[0] & MASK


def xxh64(data):
    """Returns the XXH64 hash with seed 0 (github.com/Cyan4973/xxHash, doc/xxhash_spec.md)."""
    at, length = 0, len(data)
    result = PRIMES[4]
    if length >= 32:
        lanes = [(PRIMES[0] + PRIMES[1]) & MASK, PRIMES[1], 0, -PRIMES[0] & MASK]
        words = memoryview(data[:length // 32 * 32]).cast('Q')
        for i in range(0, len(words), 4):
            lanes = [mix(lane, word) for lane, word in zip(lanes, words[i:i + 4])]
        at = length // 32 * 32
        result = sum(rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18))) & MASK
        for lane in lanes:
            result = ((result ^ mix(0, lane)) * PRIMES[0] + PRIMES[3]) & MASK
    result = (result + length) & MASK
    for size, prime, bits, times, more in ((8, None, 27, PRIMES[0], PRIMES[3]),
                                           (4, PRIMES[0], 23, PRIMES[1], PRIMES[2]),
                                           (1, PRIMES[4], 11, PRIMES[0], 0)):
        while at + size <= length:
            word = int.from_bytes(data[at:at + size], 'little')
            word = word * prime & MASK if prime else mix(0, word)
            result = (rotate(result ^ word, bits) * times + more) & MASK
            at += size
    for bits, prime in ((33, PRIMES[1]), (29, PRIMES[2]), (32, 1)):
        result = (result ^ result >> bits) * prime & MASK
    return result


def seal(data):
    return data + b'simseal1' + len(data).to_bytes(8, 'little') + xxh64(data).to_bytes(8, 'little')


# ---- changes of an HDF5 file; each returns a description ----

EXTREMES = (0, 1, -1, 2, 3, 7, 64, 255, 256, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1, 2**32,
            2**53 + 1, 2**62, 2**63 - 1, -2**63)
TEXTS = ('', ' ', '/', '..', 'x' * 100000, 'a' * 300 + '\t' + 'b', '\x1b[31mred', 'ü' * 90,
         '{"schedule": {"kind": ["x"]}}', '{"model": 7}', '[' * 400, '}', '"', '<script>', '%s%n',
         'forward', 'x ' * 300, '1e999', 'grid', 'list', 'flow', '\u202eabc')


def datasets(file):
    found = []
    file.visititems(lambda name, item: found.append((name, isinstance(item, h5py.Dataset))))
    return [name for name, is_dataset in found if is_dataset]


def any_dataset(file, draw):
    return draw.choice(datasets(file))


def replace(file, name, data, **how):
    """Replaces the data and keeps the attributes that sim reads."""
    kept = {key: file[name].attrs[key] for key in ('units', 'long_name', 'flag_values',
                                                   'flag_meanings') if key in file[name].attrs}
    del file[name]
    made = file.create_dataset(name, data=data, **how)
    for key, value in kept.items():
        made.attrs[key] = value


def values_of(file, name):
    data = file[name][()]
    if data.dtype == object:
        return numpy.array(data, dtype=h5py.string_dtype())
    return data


def lengthen(file, name, draw):
    data = values_of(file, name)
    n = draw.choice((0, 1, len(data) + 1, max(len(data) - 1, 0), 2 * len(data), 1000, 70000))
    shape = list(data.shape)
    shape[0] = n
    replace(file, name, numpy.resize(data, shape), dtype=h5py.string_dtype()
            if data.dtype == object else None)
    return f'{n} rows'


def retype(file, name, draw):
    data = values_of(file, name)
    kind = draw.choice(('i1', 'i8', 'u8', 'f4', 'f8', '>i4', 'u4', 'text', 'S4', 'bool', 'complex',
                        'ragged'))
    if kind == 'text':
        data = numpy.array(['x'] * data.size, dtype=object).reshape(data.shape)
        replace(file, name, data, dtype=h5py.string_dtype())
    elif kind == 'ragged':
        del file[name]
        file.create_dataset(name, data.shape, dtype=h5py.vlen_dtype('i4'))
    elif data.dtype == object:
        replace(file, name, numpy.zeros(data.shape, kind))
    else:
        with numpy.errstate(all='ignore'):
            replace(file, name, data.astype(kind))
    return kind


def poke(file, name, draw):
    data = values_of(file, name)
    if data.size == 0:
        return 'nothing'
    flat, said = data.reshape(-1), []
    for _ in range(draw.choice((1, 1, 2, flat.size))):
        at = draw.randrange(flat.size)
        if data.dtype == object:
            value = draw.choice(TEXTS)
            flat[at] = value.replace('\0', '')
        elif data.dtype.kind == 'f':
            value = draw.choice((float('nan'), float('inf'), -float('inf'), -1.0, 0.0, 1e308,
                                 -1e308, 5e-324, 2.0**64))
            flat[at] = value
        else:
            value = draw.choice(EXTREMES)
            bits = 8 * data.dtype.itemsize
            value &= 2**bits - 1
            if data.dtype.kind == 'i' and value >= 2**(bits - 1):
                value -= 2**bits
            flat[at] = value
        said.append(f'[{at}]={str(value)[:30]}')
    if data.dtype == object:
        replace(file, name, data, dtype=h5py.string_dtype())
    else:
        file[name][()] = data
    return ' '.join(said[:3])


def turn(file, name, draw):
    data = values_of(file, name)
    how = draw.choice(('sorted', 'reversed', 'shuffled', 'flat', 'twice', 'scalar', 'deep'))
    kind = {'dtype': h5py.string_dtype()} if data.dtype == object else {}
    if how == 'scalar':
        replace(file, name, data.reshape(-1)[0] if data.size else 0, **kind)
    elif how == 'deep':
        replace(file, name, data.reshape((1,) * 31 + (-1,)), **kind)
    elif how == 'twice':
        replace(file, name, numpy.stack([data, data]), **kind)
    elif how == 'flat':
        replace(file, name, data.reshape(-1), **kind)
    else:
        flat = list(data.reshape(-1))
        if how == 'sorted':
            flat.sort()
        elif how == 'reversed':
            flat.reverse()
        else:
            draw.shuffle(flat)
        replace(file, name, numpy.array(flat, dtype=data.dtype).reshape(data.shape), **kind)
    return how


def drop(file, name, draw):
    if draw.random() < 0.3 and '/' in name:
        name = name.split('/')[0]
    del file[name]
    return f'without {name}'


def rename(file, name, draw):
    other = any_dataset(file, draw)
    if draw.random() < 0.5 and other != name:
        file.move(name, 'between')
        file.move(other, name)
        file.move('between', other)
        return f'exchanged with {other}'
    new = draw.choice(('tasks/x' * 20, 'x', 'tasks/x/y', 'other/x', 'tasks', name + '2',
                       'devices/compute_' + 'x' * 200, 'devices/at_peak_x'))
    if new in file:
        return 'nothing'
    file.move(name, new)
    return f'as {new[:40]}'


def link(file, name, draw):
    how = draw.choice(('soft', 'external', 'hard', 'cycle', 'stored outside', 'virtual', 'filter',
                       'hollow', 'named type', 'fill'))
    data = values_of(file, name)
    if how in ('soft', 'external', 'hard', 'cycle', 'named type'):
        place = draw.choice((name, name + '_more'))
        if place in file:
            del file[place]
        other = any_dataset(file, draw)
        file[place] = {'soft': h5py.SoftLink(draw.choice(('/' + other, '/' + place, '/nowhere'))),
                       'external': h5py.ExternalLink('run.whole.h5', '/' + other),
                       'hard': file[other], 'cycle': file['/'],
                       'named type': numpy.dtype('i4')}[how]
        return f'{place}: {how} link'
    del file[name]
    if how == 'stored outside':
        made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        made.set_external(draw.choice((b'/dev/zero', b'pipe', b'run.whole.h5')), 0, data.size * 8)
        h5py.h5d.create(file.id, name.encode(), h5py.h5t.NATIVE_INT64,
                        h5py.h5s.create_simple((data.size,)), made)
    elif how == 'virtual':
        layout = h5py.VirtualLayout(shape=(max(data.size, 1),), dtype='i8')
        layout[:] = h5py.VirtualSource('run.whole.h5', name, shape=(max(data.size, 1),))
        file.create_virtual_dataset(name, layout)
    elif how == 'hollow':
        n = draw.choice((2**20, 2**33, 2**40))
        file.create_dataset(name, (n,), dtype='i8', chunks=(2**20,), compression=1, shuffle=True)
    elif how == 'fill':
        file.create_dataset(name, data.shape, dtype='i8', fillvalue=draw.choice((-1, 3)))
    else:
        file.create_dataset(name, data=numpy.zeros(data.size), chunks=(max(data.size, 1),),
                            compression='lzf', maxshape=(None,))
    return how


def attribute(file, name, draw):
    item = file[name] if draw.random() < 0.4 else file
    keys = [key for key in item.attrs if not key.startswith(('DIMENSION', 'REFERENCE', 'CLASS'))]
    key = draw.choice(keys)
    old = item.attrs[key]
    how = draw.choice(('gone', 'text', 'text', 'number', 'array', 'texts', 'bytes', 'words'))
    if how == 'gone':
        del item.attrs[key]
    elif how == 'words' and isinstance(old, str):
        words = old.split(' ')
        item.attrs[key] = ' '.join(draw.choice(words) for _ in range(draw.randrange(6)))
    else:
        item.attrs[key] = {'text': draw.choice(TEXTS), 'words': 'x', 'number': numpy.int64(
            draw.choice(EXTREMES)), 'array': numpy.arange(draw.choice((0, 3, 300))),
                           'texts': ['a', 'b', 'c'], 'bytes': numpy.bytes_(b'abc')}[how]
    return f'@{key} of {item.name}: {how}'


CHANGES = (lengthen, lengthen, retype, poke, poke, poke, poke, poke, turn, drop, rename, link,
           attribute, attribute)


def change(path, draw):
    """Makes one to three changes; returns their description."""
    said = []
    with h5py.File(path, 'r+') as file:
        for _ in range(draw.choice((1, 1, 1, 2, 3))):
            if not datasets(file):
                break
            made = draw.choice(CHANGES)
            name = any_dataset(file, draw)
            try:
                said.append(f'{name}: {made(file, name, draw)}')
            except (ValueError, TypeError, RuntimeError, LookupError, OSError,
                    OverflowError) as why:
                said.append(f'{name}: {made.__name__} not possible ({str(why)[:40]})')
                if name not in file and made is not drop:
                    break
    return '; '.join(said)


# ---- journals ----

def reline(text):
    return f'{xxh64(text.encode()):016x} {text}\n'


def places_in(value):
    found = []
    for key in (list(value) if isinstance(value, dict) else range(len(value))):
        found.append((value, key))
        if isinstance(value[key], (dict, list)):
            found += places_in(value[key])
    return found


def change_record(line, draw):
    if len(line) < 18 or line[17] != '{':
        return line
    record = json.loads(line[17:])
    for _ in range(draw.choice((1, 1, 2))):
        place, key = draw.choice(places_in(record))
        value = draw.choice((None, True, 'x', '', -1, 0.5, 1e300, -1e300, 2**63, [], {}, [1],
                             {'a': 1}, 2**32, draw.choice(EXTREMES), draw.choice(TEXTS)))
        if draw.random() < 0.2 and isinstance(place, dict):
            key = draw.choice(('result', 'error', 'point', 'x/y', 'new', '.', '', 'x' * 300))
            place[key] = value
        elif draw.random() < 0.2 and isinstance(place, dict):
            del place[key]
        else:
            place[key] = value
    return reline(json.dumps(record, ensure_ascii=False).replace('NaN', 'null'))[:-1]


# ---- what is tried ----

RUN_PLOTS = ('timeline', 'boxes', 'memory', 'mean-memory', 'segments', 'utilisation', 'spread')


def commands_of(kind, name, draw):
    """Returns commands that read files of this kind."""
    if kind == 'run':
        return (('report', name, '-o', 'a.html'), ('export', 'trace', name, '-o', 'a.json'),
                ('export', 'trace', name, '-o', 'a.pftrace'), ('compare', name, name),
                ('compare', 'run.whole.h5', name), ('compare', name, 'run.whole.h5', '-o', 'a.svg'),
                ('plot', name, '--kind', draw.choice(RUN_PLOTS), '-o', 'a.svg'),
                ('plot', name, '--kind', draw.choice(RUN_PLOTS), '-o', 'b.svg'),
                ('plot', 'run.whole.h5', name, '--kind', 'timeline', '-o', 'a.svg'))
    if kind == 'sweep':
        return (('report', name, '-o', 'a.html'), ('plot', name, '-o', 'a.svg'),
                ('plot', name, '--kind', draw.choice(('lines', 'heatmap')), '--value',
                 draw.choice(('peak_memory_bytes', 'makespan_s')), '-o', 'b.svg'))
    if kind == 'advice':
        return (('report', name, '-o', 'a.html'), ('plot', name, '-o', 'a.svg'))
    return (('plot', name, '-o', 'a.svg'),)


class Campaign:
    def __init__(self, asked):
        self.asked, self.draw = asked, random.Random(asked.seed)
        self.wrong, self.refused, self.made = [], 0, 0

    def run(self, *words):
        return subprocess.run([self.asked.sim, *words], capture_output=True, text=True,
                              errors='replace', timeout=LIMIT, check=False)

    def prepare(self):
        small = os.path.join(self.asked.root, 'scenarios/uniform-1f1b.json')
        with open('mesh.json', 'w', encoding='utf-8') as file:
            json.dump(MESH, file)
        files = {
            'run': ('run', ('run', small)),
            'several': ('run', ('run', small, '--rates', '--runs', '3')),
            'folded': ('run', ('run', 'mesh.json', '-s', '/platform/devices=256', '-s',
                               '/model/batch_size=512', '-s', '/parallel/data=128')),
            'allocator': ('run', ('run', 'mesh.json', '--allocator', 'pytorch')),
            'grid': ('sweep', ('sweep', small, '--vary', '/schedule/kind=gpipe,1f1b', '--vary',
                               '/schedule/micro_batches=4,8,16')),
            'list': ('sweep', ('sweep', small, '--zip', '--vary', '/schedule/kind=gpipe,1f1b',
                               '--vary', '/schedule/micro_batches=4,8')),
            'advice': ('advice', ('advise', 'mesh.json')),
            'validation': ('validation', ('validate', '--select', 'gpu=MI210')),
        }
        self.kinds = {}
        for name, (kind, words) in files.items():
            done = self.run(*words, '-o', f'{name}.whole.h5')
            if done.returncode not in (0, 4) or not os.path.exists(f'{name}.whole.h5'):
                sys.exit(f'{" ".join(words)}: {done.returncode}: {done.stderr}')
            self.kinds[name] = kind
        os.mkfifo('pipe')

    def judge(self, words, said, codes=(0, 3)):
        """Runs a command on a file with the changes that `said` describes."""
        try:
            done = self.run(*words)
        except subprocess.TimeoutExpired:
            self.wrong.append(f'{" ".join(words)}: more than {LIMIT} s: {said}')
            print(self.wrong[-1], flush=True)
            return
        self.made += 1
        self.refused += done.returncode == 3
        text = done.stderr
        problem = None
        if re.search('Sanitizer|runtime error', text):
            problem = 'a sanitizer'
        elif done.returncode not in codes:
            problem = f'exit code {done.returncode}'
        elif done.returncode == 3 and not re.search('^sim: error: ', text, re.MULTILINE):
            problem = 'no message'
        elif 'cannot be read to its end' in text and 'not possible' not in said:
            problem = 'blamed on HDF5'
        if problem:
            self.wrong.append(f'{" ".join(words)}: {problem}: {said}: {text.strip()[:3000]}')
            print(self.wrong[-1], flush=True)
            if self.asked.keep:
                os.makedirs(self.asked.keep, exist_ok=True)
                with open(words[-1] if os.path.exists(words[-1]) else 'changed.h5', 'rb') as file:
                    data = file.read()
                with open(os.path.join(self.asked.keep, f'{len(self.wrong)}.h5'), 'wb') as file:
                    file.write(data)

    def try_file(self):
        name = self.draw.choice(list(self.kinds))
        with open(f'{name}.whole.h5', 'rb') as file:
            whole = file.read()[:-SEAL]
        with open('changed.h5', 'wb') as file:
            file.write(whole)
        said = f'{name}: {change("changed.h5", self.draw)}'
        with open('changed.h5', 'rb') as file:
            data = file.read()
        if self.draw.random() < 0.9:
            with open('changed.h5', 'wb') as file:
                file.write(seal(data))
        words = commands_of(self.kinds[name], 'changed.h5', self.draw)
        for command in self.draw.sample(words, min(len(words), self.asked.commands)):
            # exit code 2: the file is valid, but lacks the plotted metric or has too few runs
            self.judge(command, said, (0, 1, 2, 3) if command[0] == 'plot' else (0, 3))

    def journals(self):
        """Commands, and the lines of the journal of each, which was stopped before its end."""
        small = os.path.join(self.asked.root, 'scenarios/uniform-1f1b.json')
        for words in (('sweep', small, '--vary', '/schedule/kind=gpipe,1f1b', '--vary',
                       '/iterations=' + ','.join(str(n) for n in range(1, 60)), '-j', '1'),
                      ('advise', 'mesh.json', '-j', '1'),
                      ('validate', '--select', 'gpu=MI210', '-j', '1')):
            for left in ('j.h5', 'j.h5.journal'):
                if os.path.exists(left):
                    os.remove(left)
            lines = []
            with subprocess.Popen([self.asked.sim, *words, '-o', 'j.h5'],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                while process.poll() is None and len(lines) < 6:
                    time.sleep(0.005)
                    if os.path.exists('j.h5.journal'):
                        with open('j.h5.journal', encoding='utf-8') as file:
                            lines = file.read().splitlines()[:-1]
                process.kill()
            if len(lines) > 3:
                yield words, lines

    def try_journals(self):
        for words, lines in self.journals():
            for _ in range(self.asked.journals):
                lines = lines[:12]
                changed = [change_record(line, self.draw) if self.draw.random() < 0.5 else line
                           for line in lines]
                with open('j.h5.journal', 'w', encoding='utf-8') as file:
                    file.write('\n'.join(changed) + '\n')
                if os.path.exists('j.h5'):
                    os.remove('j.h5')
                self.judge((*words, '-o', 'j.h5', '--resume'), '\n'.join(
                    new for old, new in zip(lines, changed) if old != new)[:3000], (0, 3, 4))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('sim', type=os.path.abspath)
    parser.add_argument('root', type=os.path.abspath)
    parser.add_argument('-n', type=int, default=40, help='files')
    parser.add_argument('--journals', type=int, default=4, help='of each kind')
    parser.add_argument('--commands', type=int, default=2, help='on each file')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--keep', type=os.path.abspath, help='folder for what fails')
    asked = parser.parse_args()
    debian = '/usr/bin/python3'  # has the packages of the system
    if not h5py and sys.executable != debian and os.path.exists(debian):
        os.execv(debian, [debian, *sys.argv])
    if not h5py:
        print('no h5py')
        return 77
    assert xxh64(b'') == 0xef46db3751d8e999  # of the specification
    campaign = Campaign(asked)
    with tempfile.TemporaryDirectory(prefix='sim-campaign-') as folder:
        os.chdir(folder)
        campaign.prepare()
        for _ in range(asked.n):
            campaign.try_file()
        if asked.journals:
            campaign.try_journals()
    print(f'{len(campaign.wrong)} found' if campaign.wrong else
          f'{campaign.made} commands on {asked.n} changed files and journals: {campaign.refused} '
          'refused, the rest done')
    return bool(campaign.wrong)


if __name__ == '__main__':
    sys.exit(main())
