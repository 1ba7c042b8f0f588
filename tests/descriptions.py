"""Reads descriptions of facts/ and merges them with the ones that they are like (facts.h)."""
import json
import os

OWN = ('name', 'title', 'aliases', 'except')


def names(root, folder):
    return sorted(name[:-len('.json')] for name in os.listdir(os.path.join(root, 'facts', folder))
                  if name.endswith('.json'))


def load(root, folder, name):
    with open(os.path.join(root, 'facts', folder, name + '.json'), encoding='utf-8') as file:
        own = json.load(file)
    if 'like' not in own:
        return own
    base = load(root, folder, own.pop('like'))
    return merged(own, {key: value for key, value in base.items() if key not in OWN})


def merged(own, base):
    both = {**base, **own}
    for key in own.keys() & base.keys():
        if isinstance(own[key], dict) and isinstance(base[key], dict):
            both[key] = merged(own[key], base[key])
    return {key: value for key, value in both.items() if value is not None}
