"""Writes the outcome of each test as one line of JSON to the file named by TCK_OUTCOMES.

A pytest plugin that is loaded into the runner of each kit, so that all kits are evaluated in the same way.
"""

import json
import os


def pytest_runtest_logreport(report):
    """Writes a line for the test itself, or for the setup or teardown that failed."""
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
