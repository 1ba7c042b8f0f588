"""Prints the folder below a prefix in which this Python looks for packages: where-packages-go.py
PREFIX

Nothing, where it looks in none.
"""
import site
import sys

prefix = sys.argv[1].rstrip('/') + '/'
found = [folder for folder in site.getsitepackages()
         if folder.startswith(prefix) and not folder.startswith(prefix + 'local/')]
print(found[0] if found else '')
