#!/usr/bin/env python3
"""Makes the parts of every page (page-parts.h) from files, as C.

    embed.py OUTPUT.c --style F.css --notices F.txt --program F.js ... [--library F.js ...]
"""
import argparse
import base64
import hashlib


def read(names):
    """The files, one after the other, as they stand in a script element."""
    texts = []
    for name in names:
        with open(name, encoding='utf-8') as file:
            texts.append(file.read().rstrip() + '\n')
    text = ''.join(texts)
    for tag in ('</script', '</style', '<!--'):
        if tag in text.lower():
            raise SystemExit(f'{names}: has "{tag}", which would end an element of the page')
    return text


def source(name, text):
    """A constant of C, a line of the text on each of its lines."""
    escaped = text.replace('\\', '\\\\').replace('"',
                                                 '\\"').replace('?', '\\?').replace('\t', '\\t')
    lines = ''.join(c if ord(c) < 128 else ''.join(f'\\{byte:03o}' for byte in c.encode())
                    for c in escaped)
    quoted = '\n    '.join(f'"{line}\\n"' for line in lines.split('\n')[:-1])
    return f'const char {name}[] =\n    {quoted or chr(34) * 2};\n'


def fingerprint(text):
    digest = hashlib.sha256(text.encode()).digest()
    return "'sha256-" + base64.b64encode(digest).decode() + "'"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('output')
    parser.add_argument('--style', nargs='+', required=True)
    parser.add_argument('--notices', nargs='+', required=True)
    parser.add_argument('--program', nargs='+', required=True)
    parser.add_argument('--library', nargs='*', default=[])
    options = parser.parse_args()
    library, program = read(options.library), read(options.program)
    policy = ("default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; "
              f"style-src 'unsafe-inline'; script-src {fingerprint(library)} "
              f"{fingerprint(program)}")
    with open(options.output, 'w', encoding='utf-8') as out:
        out.write('#include "plots/page/page-parts.h"\n\n')
        out.write(source('cs_page_style', read(options.style)))
        out.write(source('cs_page_notices', read(options.notices)))
        out.write(source('cs_page_library', library))
        out.write(source('cs_page_program', program))
        out.write(f'const char cs_page_policy[] = "{policy}";\n')


if __name__ == '__main__':
    main()
