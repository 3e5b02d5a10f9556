"""The Python program of the README runs as it is written, except for the server's address."""

import subprocess
import sys

from pathlib import Path


README = Path(__file__).parents[3] / 'README.md'


def test_program_of_the_readme(url: str) -> None:
    program = README.read_text().split('```python\n')[1].split('```')[0]
    program = program.replace('http://127.0.0.1:4242', url)
    done = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (0, '10 USD is 854.90 INR.\n'), done.stderr
