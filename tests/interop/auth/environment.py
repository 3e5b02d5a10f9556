"""What `cargo xtask interop` has installed for these tests."""

import os

from pathlib import Path


# The program under test.
PROGRAM = os.environ['A2AD_PROGRAM']
# Node.js, the packages of this folder, and those of the suite `javascript`.
NODE = os.environ['NODE']
PACKAGES = Path(os.environ['PACKAGES'])
PACKAGES_SDK = Path(os.environ['PACKAGES_SDK'])
# The interpreters of the suites `python` and `python03`.
PYTHON_SDK = os.environ['PYTHON_SDK']
PYTHON_SDK_03 = os.environ['PYTHON_SDK_03']
