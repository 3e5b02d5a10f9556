"""Tells what became of each test, one line of JSON each, in the file that TCK_OUTCOMES names.

Loaded into the kit's own pytest from outside, so that every kit is read the same way.
"""

import json
import os


def pytest_runtest_logreport(report):
    """Writes a line for the test itself, or for what kept it from running."""
    if report.when != 'call' and report.outcome == 'passed':
        return
    if report.when == 'teardown' and report.outcome == 'skipped':
        return
    expected = hasattr(report, 'wasxfail')
    if report.outcome == 'skipped' and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2]
    else:
        crash = getattr(report.longrepr, 'reprcrash', None)
        reason = crash.message if crash else str(report.longrepr or '')
    line = {
        'test': report.nodeid,
        'outcome': report.outcome,
        'expected': expected,
        'reason': reason,
    }
    with open(os.environ['TCK_OUTCOMES'], 'a', encoding='utf-8') as out:
        out.write(json.dumps(line) + '\n')
