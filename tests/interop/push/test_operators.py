"""Notifications that were given up: operators list them and send them again."""

import json

from helpers import eventually

from calls import PushServer, config
from conftest import Receive, Start
from receiver import Receiver, answers


THREE_ATTEMPTS = 'retry_after = ["50ms", "50ms"]'


def test_dead_letter_is_listed_and_sent_again(start: Start, receive: Receive) -> None:
    server = start(config(THREE_ATTEMPTS))
    # Three attempts, and one of an operator.
    receiver = receive(answers(500, 503, 400, 500))
    task = server.ask()
    assert server.deliveries() == []
    # The state that the task has is the first notification.
    secret = server.register(task, receiver.url, id='mine').secret
    ((name, of, state, host, *_),) = eventually(server.dead_letters)
    assert (of, state, host) == (task, 'dead', f'127.0.0.1:{receiver.port}')
    assert len(receiver.deliveries) == 3

    failed = server.operate('deliveries', 'resend', name)
    assert failed.returncode == 8 and 'status 500' in failed.stderr, failed
    assert [row[0] for row in server.deliveries()] == [name]
    listed = json.loads(server.operate('deliveries', 'ls', '--json').stdout)['deliveries']
    assert console(server) == listed
    assert secret not in json.dumps(listed)

    delivered = server.operate('deliveries', 'resend', name)
    assert delivered.returncode == 0, delivered.stderr
    deliveries = receiver.deliveries
    assert len(deliveries) == 5
    assert {(each.id, each.body) for each in deliveries} == {(listed[0]['notification'], deliveries[0].body)}
    assert deliveries[0].state == 'input-required'
    assert server.deliveries() == []
    unknown = server.operate('deliveries', 'resend', name)
    assert unknown.returncode == 6, unknown


def console(server: PushServer) -> list[object]:
    """The deliveries that the operators' API lists."""
    token = (server.directory / 'a2ad.db.keys/admin').read_text().strip()
    response = server.request('/console/api/deliveries', None, {'Authorization': f'Bearer {token}'})
    assert response.status == 200, response.body
    assert server.request('/console/api/deliveries', None, {}).status == 401
    return response.body['deliveries']


def failed(server: PushServer) -> list[list[str]] | None:
    """The deliveries, once the first attempt has been recorded."""
    rows = server.deliveries()
    return rows if '500' in rows[0] else None


def test_pending_delivery_is_listed_and_attempted_now(start: Start, receive: Receive) -> None:
    server = start(config('retry_after = ["1h"]'))
    receiver: Receiver = receive(answers(500))
    task = server.ask()
    server.register(task, receiver.url)
    receiver.wait_for_count(1)
    ((name, of, state, *_),) = eventually(lambda: failed(server))
    assert (of, state) == (task, 'pending')
    assert server.operate('deliveries', 'resend', name).returncode == 0
    one, two = receiver.wait_for_count(2)
    assert (one.id, one.body) == (two.id, two.body)
    assert eventually(lambda: True if server.deliveries() == [] else None)
