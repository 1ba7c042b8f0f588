#!/usr/bin/env python3
"""Hostile names: names.py SIM ROOT [-n TRIES] [--seed N]

Puts texts that shells, gnuplot, HTML, SVG, JSON and terminals would take for commands into each
string and key of scenarios, of files they name, of costs and of points, into options, and into
names of files; then does what sim can do with the file. Nothing is started, no file appears but the
output, pages, pictures and documents stay well-formed and have no elements that others do not have,
and what is printed is UTF-8 without control characters, and with --json one document. Without -n,
each text in each place.
"""
import argparse
import html.parser
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import unicodedata
import xml.etree.ElementTree

OUTPUTS = ('.h5', '.svg', '.html', 'out.json')
LIMIT = 60  # s, on a busy machine
MARK = 'pwned'  # a file of this name appears if a text is executed as a command
TEXTS = (
    '$(touch pwned)', '`touch pwned`', '; touch pwned;', '| touch pwned', "'; touch pwned; '",
    '"; touch pwned; "',
    '\n!touch pwned\n', '\\\n!touch pwned', '"; system("touch pwned"); "',
    "'.system('touch pwned').'", '@pwned',
    '`system "touch pwned"`', '"\nset output "pwned"\nplot 1\n"', '<touch pwned', '> pwned',
    '|touch pwned',
    '../pwned', 'a/../../pwned', '/nonexistent/pwned', '~/pwned', '-o', '--output=pwned', '-',
    '%s%n%d%99999999d', '%',
    '{}', '\\', '\\n', '{/Times=99999 x}', 'x_{y}^{z}', '&{x}', '@^{x}',
    '</script><script>pwned()</script>',
    '<!--<script>', '-->', ']]>', '<![CDATA[', '</text></svg><svg onload="pwned()">',
    "' onload='pwned()",
    '"><img src=x onerror=pwned()>', 'javascript:pwned()', '&lt;', '&#0;', '&pwned;', '","pwned":"',
    '\\u0000', '\\"',
    '<!ENTITY pwned SYSTEM "file:///etc/passwd">', '\x1b[31mred\x1b]0;title\x07', '\r\n', '\t',
    '\x01\x02\x7f',
    '\b\b\b', '\x85\x9b31m', '\u202e\u2066', '\u2028\u2029', '\ufeff', '\ufffe', '\U0001f600',
    '=1+1', '@SUM(1)', ' ',
    '', '.', '..', 'A' * 300, 'A' * 65536, '<' * 65536, '\u00e9' * 40000, '"' * 65536, '\0',
    # not UTF-8
    '\udcff\udcfe', '\udcc0\udcaf', '\udced\udca0\udc80', 'a\udce2\udc82',
    '\udcf5\udc80\udc80\udc80', '\udc9b31m')
MODEL = {'schema_version': 1, 'name': 'model', 'batch_size': 4, 'input': '1 MB',
         'provenance': {'source': 'made up', 'hardware': 'none', 'date': '2026-01-01',
                        'notes': 'none'},
         'layers': [{'name': f'layer{i}', 'forward': '1 ms', 'backward': '2 ms', 'weights': '1 MB',
                     'output': '1 MB'}
                    for i in range(3)]}
CHAIN = {'schema_version': 1, 'name': 'chain', 'model': {'file': 'model.json'}, 'iterations': 2,
         'platform': {'topology': 'file', 'file': 'platform.json', 'devices': 2},
         'schedule': {'kind': '1f1b', 'micro_batches': 2}}
ZOO = {'schema_version': 1, 'name': 'zoo', 'model': {'name': 'resnet18', 'device': 'device.json',
                                                     'batch_size': 16},
       'costs': 'costs.json', 'platform': {'topology': 'nvlink_switch', 'devices': 8,
                                           'bandwidth': '133 GB/s'},
       'schedule': {'kind': 'dp'}, 'collectives': {'fidelity': 'analytic'}}
CONFIG = {'model_type': 'llama', 'architectures': ['LlamaForCausalLM'], 'hidden_size': 64,
          'intermediate_size': 128,
          'num_hidden_layers': 2, 'num_attention_heads': 4, 'vocab_size': 100,
          'max_position_embeddings': 128,
          'hidden_act': 'silu', 'torch_dtype': 'bfloat16'}
POINTS = {'schema': 'truth/1', 'dataset': 'made', 'points': [{
    'id': 'made/1', 'hardware': {'gpu': 'A100-SXM4-80GB', 'gpus': 2, 'gpus_per_node': 8},
    'parallel': {'pp': 2},
    'model': {'name': 'gpt', 'kind': 'decoder', 'layers': 4, 'hidden': 256, 'heads': 4, 'ffn': 1024,
              'vocab': 1000,
              'seq': 128, 'act': 'gelu', 'norm': 'layernorm', 'pos': 'learned', 'tied': True,
              'bias': True},
    'batch': {'global': 8, 'micro': 1}, 'precision': 'fp16', 'recompute': 'none',
    'schedule': '1f1b',
    'framework': 'Megatron-LM', 'measured': {'step_time_s': 0.01}, 'features': ['pp']}]}
PLAIN = 'plain  text'  # for two blanks, gnuplot adds an attribute
# what is done with each file that has a text in it, until something fails
RUN = (('run', 'SCENARIO', '-o', 'out.h5'), ('run', 'SCENARIO', '--json'),
       ('plot', 'out.h5', '-o', 'out.svg'),
       ('report', 'out.h5', '-o', 'out.html'), ('export', 'trace', 'out.h5', '-o', 'out.json'),
       ('compare', 'out.h5', 'run.h5'), ('compare', 'out.h5', 'run.h5', '--json'),
       ('export', 'topology', 'SCENARIO', '-o', 'out.svg'),
       ('check', 'SCENARIO', '--resolved'), ('check', 'SCENARIO'), ('plan', 'SCENARIO'),
       ('plan', 'SCENARIO', '--planner', 'balanced'), ('sweep', 'SCENARIO', '-v', '/iterations=1,2',
                                                       '--table', 'main'),
       ('sweep', 'SCENARIO', '-v', '/iterations=1,2', '--json'))
FILES = {
    'chain.json': RUN, 'model.json': RUN, 'platform.json': RUN, 'zoo.json': RUN, 'device.json': RUN,
    'costs.json': (('plot', 'costs.json', '-o', 'out.svg'), *RUN),
    'config.json': (('model', 'config.json'), ('model', 'config.json', '--json')),
    'net.json': (('model', 'net.json', '--device', 'v100'), ('model', 'net.json', '--json'),
                 ('model', 'net.json', '--device', 'v100', '-o', 'out.json'),
                 ('strategies', 'net.json'),
                 ('strategies', 'net.json', '--json')),
    'points.json': (('validate', 'points.json', '--json'),
                    ('validate', 'points.json', '-p', '--decompose'),
                    ('validate', 'points.json', '-p', '-o', 'out.h5'),
                    ('plot', 'out.h5', '-o', 'out.svg'),
                    ('report', 'out.h5', '-o', 'out.html')),
}
ARGUMENTS = (  # TEXT is what is hostile; a picture, a page, or none
    ('plot', 'run.h5', '--title', 'TEXT', '-o', 'out.svg'),
    ('plot', 'run.h5', '--x', 'TEXT', '-o', 'out.svg'),
    ('plot', 'run.h5', '--width', 'TEXT', '-o', 'out.svg'),
    ('plot', 'run.h5', '--value', 'TEXT', '-o', 'out.svg'),
    ('run', 'chain.json', '-s', '/name=TEXT', '-o', 'out.h5'),
    ('run', 'chain.json', '-s', 'TEXT', '-o', 'out.h5'),
    ('run', 'TEXT', '-o', 'out.h5'), ('sweep', 'chain.json', '-v', 'TEXT', '-o', 'out.h5'),
    ('TEXT',), ('help', 'TEXT'),
    ('sweep', 'chain.json', '-v', '/name=TEXT', '-o', 'out.h5'), ('list', 'TEXT'),
    ('model', 'TEXT', '-o', 'out.json'),
    ('export', 'topology', 'TEXT', '-o', 'out.svg'), ('validate', 'points.json', '-s', 'id=TEXT'),
    ('run', '--log-level', 'TEXT'), ('check', 'TEXT'), ('check', 'TEXT', '--json'),
    ('plan', 'TEXT'),
    ('advise', 'TEXT'), ('osdp', 'TEXT'), ('strategies', 'TEXT'), ('figures', '--list', 'TEXT'),
    ('replay', 'TEXT'),
    ('sweep', 'chain.json', '-v', '/name=TEXT,2', '--table', 'main'),
    ('sweep', 'chain.json', '-v', '/name=TEXT,2', '--json'),
    ('sweep', 'chain.json', '-v',
     '/schedule={"kind": "gpipe", "micro_batches": 2, "TEXT": 2},{"kind": "TEXT"}'),
    ('sweep', 'chain.json', '-v', '/TEXT=1,2'), ('sweep', 'chain.json', '-v', '/sweep/TEXT=1,2',
                                                 '--table', 'main'),
    ('validate', 'points.json', '--set', 'TEXT=1', '-o', 'out.h5'),
    ('validate', 'points.json', '--scenario', 'TEXT'),
    ('plan', 'chain.json', '--planner', 'TEXT'), ('compare', 'run.h5', 'TEXT'),
    ('report', 'TEXT', '-o', 'out.html'),
    ('completion', 'words', '--', 'run', 'chain.json', '-s', 'TEXT'),
    ('import', 'osu', 'chain.json', '--hardware', 'TEXT', '--date', 'TEXT', '-o', 'out.json'))


class Page(html.parser.HTMLParser):
    """Elements of a page, with their attributes."""

    def __init__(self, text):
        super().__init__()
        self.found = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found |= {(tag, name) for name in ['', *(name for name, _ in attrs)]}


def elements_of_picture(data):
    return {(e.tag, name) for e in xml.etree.ElementTree.fromstring(data).iter()
            for name in ['', *e.attrib]}


def strings(value, path=()):
    """Paths of all strings and, with a last part None, of all keys."""
    if isinstance(value, str):
        yield path
    members = value.items() if isinstance(value,
                                          dict) else enumerate(value) if isinstance(value,
                                                                                    list) else ()
    for key, member in members:
        if isinstance(value, dict):
            yield (*path, key, None)
        yield from strings(member, (*path, key))


def changed(value, path, text):
    """A copy with the text in that place."""
    if not path:
        return text
    if isinstance(value, list):
        return [changed(v, path[1:], text) if i == path[0] else v for i, v in enumerate(value)]
    if path[1:] == (None,):
        return {text if k == path[0] else k: v for k, v in value.items()}
    return {k: changed(v, path[1:], text) if k == path[0] else v for k, v in value.items()}


def encoded(text):
    return text.encode('utf-8', 'surrogateescape')


def write(name, value):
    with open(name, 'wb') as file:
        file.write(encoded(json.dumps(value, ensure_ascii=False)))


def tree():
    return {os.path.join(at, name) for at, folders, files in os.walk('..')
            for name in (*folders, *files)}


def control(said):
    """Characters that a terminal would obey, or that are none."""
    return sorted({c for c in said.decode('utf-8', 'surrogateescape')
                   if c != '\n' and unicodedata.category(c) in ('Cc', 'Cs') or c in '\u202e\u2066'})


def wrong_json(data):
    try:
        json.loads(data)
    except ValueError as error:  # no UTF-8 is one as well
        return str(error)
    return None


class Attack:
    def __init__(self, asked):
        self.sim, self.wrong, self.commands, self.refused = asked.sim, [], 0, 0
        self.usual, self.learning = {}, True  # elements of pictures and pages
        self.environment = {**os.environ, 'HOME': os.path.abspath('../home'),
                            'TMPDIR': os.path.abspath('../tmp')}

    def call(self, words, what):
        """True when it did what it was told to."""
        self.commands += 1
        try:
            made = subprocess.run([encoded(w) for w in (self.sim, *words)], capture_output=True,
                                  timeout=LIMIT,
                                  check=False, stdin=subprocess.DEVNULL, env=self.environment)
        except subprocess.TimeoutExpired:
            self.wrong.append(f'{what}: {" ".join(words)[:150]!r}: takes more than {LIMIT} s')
            return False
        self.refused += made.returncode != 0
        problems = [f'prints {found!r}' for found in [control(made.stdout + made.stderr)] if found]
        if '--json' in words and made.stdout:
            problems += [f'prints no JSON: {error}' for error in [wrong_json(made.stdout)] if error]
        if made.returncode not in (0, 1, 2, 3, 4):
            problems.append(f'ends with {made.returncode}: {made.stderr[-200:]!r}')
        if made.returncode == 0 and words[-2] == '-o':
            problems += [f'{words[-1]}: {problem}' for problem in self.look(words[0], words[-1])]
        self.wrong += [f'{what}: {" ".join(words)[:150]!r}: {problem}' for problem in problems]
        return made.returncode == 0

    def look(self, command, name):
        """What is wrong with the file. The first one of its kind is the usual one."""
        with open(name, 'rb') as file:
            data = file.read()
        if name.endswith('.json'):
            yield from filter(None, [wrong_json(data)])
            return
        if not name.endswith(('.svg', '.html')):
            return
        try:
            found = (elements_of_picture(data) if name.endswith('.svg')
                     else Page(data.decode()).found)
        except (xml.etree.ElementTree.ParseError, UnicodeDecodeError) as error:
            yield str(error)
            return
        usual = self.usual.setdefault((command, name.rpartition('.')[2]), set())
        if self.learning:
            usual |= found
        elif found - usual:
            yield f'has {sorted(found - usual)[:4]}'

    def attack_file(self, name, path, text):
        """The text in that place of the file."""
        write(name, changed(DOCUMENTS[name], path, text))
        scenario = {'device.json': 'zoo.json', 'costs.json': 'zoo.json',
                    'zoo.json': 'zoo.json'}.get(name, 'chain.json')
        self.attack([[scenario if w == 'SCENARIO' else w for w in words] for words in FILES[name]],
                    f'{name} {path} {text[:40]!r}')
        write(name, DOCUMENTS[name])

    def attack_argument(self, words, text):
        words = [w.replace('TEXT', text) for w in words]
        # Linux' limit of an argument
        if '\0' not in text and max(len(encoded(w)) for w in words) < 128 << 10:
            self.attack([words], f'argument {text[:40]!r}')

    def attack_name(self, text):
        """Of a scenario and its results, which are named after it, and of a picture."""
        if not text or '\0' in text or '/' in text or len(encoded(text)) > 240:
            return
        write(f'./{text}.json', CHAIN)
        results = [f'./{text}.h5', f'./{text}.svg', f'./{text}.html']
        self.attack([['run', f'./{text}.json', '-o', results[0]],
                     ['plot', results[0], '-o', 'out.svg'],
                     ['plot', results[0], 'run.h5', '-o', 'out.svg'],
                     ['report', results[0], 'run.h5', '-o', 'out.html'],
                     ['compare', results[0], 'run.h5', '-o', 'out.svg'],
                     ['plot', 'run.h5', '-o', results[1]],
                     ['report', 'run.h5', '-o', results[2]]], f'file {text[:40]!r}')
        os.remove(encoded(f'./{text}.json'))

    def attack(self, commands, what):
        before = tree()
        for words in commands:
            if not self.call(words, what):
                break
        new = tree() - before
        outputs = {name for name in new if os.path.dirname(name) == '../work'
                   and name.endswith(OUTPUTS)}
        if new - outputs:
            self.wrong.append(f'{what}: {new - outputs} appeared')
        for name in new:
            os.remove(encoded(name))


DOCUMENTS = {'chain.json': CHAIN, 'model.json': MODEL, 'zoo.json': ZOO, 'points.json': POINTS,
             'config.json': CONFIG}


def read_documents(asked):
    """More of them: few of their entries."""
    for name, path, keep in (('costs', 'calib/measured/made-up-8.json', None),
                             ('device', 'facts/devices/v100.json', None)):
        with open(os.path.join(asked.root, path), encoding='utf-8') as file:
            DOCUMENTS[f'{name}.json'] = json.load(file)
    for name, words in (('platform', ['export', 'topology', 'pcie-8gpu']),
                        ('net', ['model', 'vgg16', '--json'])):
        made = subprocess.run([asked.sim, *words], capture_output=True, check=True)
        DOCUMENTS[f'{name}.json'] = json.loads(made.stdout)
    del DOCUMENTS['net.json']['layers'][2:]
    for name, document in DOCUMENTS.items():
        write(name, document)


def tries():
    """(method, its arguments before the text)"""
    for name, document in DOCUMENTS.items():
        seen = set()  # report similar errors once
        for path in strings(document):
            kind = tuple(part if isinstance(part, str) or part is None else 0 for part in path)
            if kind not in seen:
                yield Attack.attack_file, (name, path)
            seen.add(kind)
    for words in ARGUMENTS:
        yield Attack.attack_argument, (words,)
    yield Attack.attack_name, ()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('sim', type=os.path.abspath)
    parser.add_argument('root', type=os.path.abspath)
    parser.add_argument('-n', type=int, help='tries; without it all')
    parser.add_argument('--seed', type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix='sim-campaign-') as folder:
        for name in ('work', 'home', 'tmp'):
            os.mkdir(os.path.join(folder, name))
        os.chdir(os.path.join(folder, 'work'))
        read_documents(asked)
        subprocess.run([asked.sim, 'run', 'chain.json', '-o', 'run.h5'], check=True,
                       capture_output=True)
        attack = Attack(asked)
        for name in DOCUMENTS:
            attack.attack_file(name, ('name',) if 'name' in DOCUMENTS[name]
                               else ('schema_version',), PLAIN)
        attack.attack_name(PLAIN)
        attack.learning = False
        every = list(itertools.product(tries(), TEXTS))
        if asked.n:
            every = random.Random(asked.seed).sample(every, asked.n)
        for (method, where), text in every:
            method(attack, *where, text)
    print('\n'.join(attack.wrong) or f'{len(every)} texts, {attack.commands} commands, '
                                     f'{attack.refused} refused')
    return bool(attack.wrong)


if __name__ == '__main__':
    sys.exit(main())
