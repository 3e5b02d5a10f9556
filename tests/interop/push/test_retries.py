"""Receivers that fail, are slow or refuse: what is sent again, when, and whom it delays."""

import threading
import time

from collections import Counter
from email.utils import formatdate
from itertools import groupby

from helpers import eventually

from calls import QUICK, PushServer, config
from conftest import Receive, Start
from receiver import ACCEPTED, Answer, Delivery, Receiver, answers


def test_every_attempt_has_the_same_id_and_bytes(server: PushServer, receive: Receive) -> None:
    attempts: Counter[str] = Counter()

    def fail_twice(delivery: Delivery) -> Answer:
        attempts[delivery.id] += 1
        return Answer(500) if attempts[delivery.id] < 3 else ACCEPTED

    receiver = receive(fail_twice)
    response = server.say('jump', push={'id': 'mine', 'url': receiver.url})
    task = response.result['task']['id']
    # The next change happens while the first notification is being retried, and must not overtake it.
    server.say('approve', task).result
    receiver.wait(lambda deliveries: [each.state for each in deliveries].count('completed') == 3)

    numbers = [delivery.number for delivery in receiver.deliveries]
    assert numbers == sorted(numbers)
    groups = [list(group) for _, group in groupby(receiver.deliveries, lambda each: each.id)]
    assert len(groups) == len(attempts)
    for group in groups:
        assert len({each.body for each in group}) == 1
        assert group[0].id.startswith(f'{task}-')
        # A status that is neither terminal nor interrupted may be superseded before its last attempt.
        assert len(group) == 3 or group[0].state in ('submitted', 'working')
    settled = [group[0].state for group in groups if len(group) == 3]
    assert [state for state in settled if state not in ('submitted', 'working')] == ['input-required', 'completed']


def test_events_are_delivered_in_the_order_of_the_log(server: PushServer, receiver: Receiver) -> None:
    server.say('sections=4 delay=20ms', agent='writer', push={'url': receiver.url}).result
    deliveries = receiver.wait(lambda found: any(b'TASK_STATE_COMPLETED' in each.body for each in found))
    numbers = [delivery.number for delivery in deliveries]
    assert numbers == sorted(set(numbers))
    kinds = [next(iter(delivery.json)) for delivery in deliveries]
    assert kinds[-1] == 'task' and kinds.count('artifactUpdate') >= 4
    # The chunks of the artifact, put together, are the artifact of the task.
    updates = [delivery.json['artifactUpdate'] for delivery in deliveries if 'artifactUpdate' in delivery.json]
    chunks = [part['text'] for update in updates for part in update['artifact']['parts']]
    (artifact,) = deliveries[-1].json['task']['artifacts']
    assert ''.join(chunks) == ''.join(part['text'] for part in artifact['parts'])


def test_retry_after_is_honoured(server: PushServer, receive: Receive) -> None:
    for status in (429, 503):
        left = [Answer(status, header=('Retry-After', '1'))]
        receiver = receive(lambda _, left=left: left.pop() if left else ACCEPTED)
        task = server.ask()
        server.register(task, receiver.url)
        server.say('approve', task).result
        first, second = receiver.wait_for_count(2)[:2]
        assert second.at - first.at > 0.95, status
        receiver.wait_for_state('completed')


def test_gone_disables_the_webhook(server: PushServer, receive: Receive, receiver: Receiver) -> None:
    gone = receive(answers(410))
    task = server.ask()
    server.register(task, gone.url, id='gone')
    server.register(task, receiver.url, id='kept')
    health = eventually(lambda: disabled if (disabled := server.health(task, 'gone')).startswith('disabled') else None)
    assert 'delivered=0' in health and '410' in health
    # Both would be notified of the next change.
    server.say('approve', task).result
    receiver.wait_for_state('completed')
    assert eventually(lambda: True if server.health(task, 'kept').startswith('ok; ') else None)
    assert server.health(task, 'gone') == health
    assert [each.state for each in gone.deliveries] == ['input-required']


def test_redirects_are_not_followed(start: Start, receive: Receive) -> None:
    # The target may be called, too: it is not, because redirects are never followed.
    server, target = start(config()), receive()
    left = [Answer(status, header=('Location', target.url)) for status in (302, 307, 308)]
    receiver = receive(lambda _: left.pop(0) if left else ACCEPTED)
    task = server.ask()
    server.register(task, receiver.url)
    server.say('approve', task).result
    deliveries = receiver.wait(lambda found: len(found) > 3 and found[-1].state == 'completed')
    assert {delivery.path for delivery in deliveries} == {'/hook'}
    assert target.connections == 0


def test_stalled_receiver_delays_nobody(start: Start, receive: Receive, receiver: Receiver) -> None:
    server = start(config(f'{QUICK}\ntimeout = "3s"'))
    release = threading.Event()

    def stall(_: Delivery) -> Answer:
        release.wait(60)
        return ACCEPTED

    stalled = receive(stall)
    first = server.say('hello', agent='echo', push={'url': stalled.url}).result['task']
    assert first['status']['state'] == 'TASK_STATE_COMPLETED'
    stalled.wait_for_count(1)
    # Other callers, with and without webhooks, while the request to the stalled one is open.
    for _ in range(10):
        server.say('hello', agent='echo').result
    other = server.say('hello', agent='echo', push={'url': receiver.url}).result['task']['id']
    assert receiver.wait_for_state('completed').json['task']['id'] == other
    assert len(stalled.deliveries) == 1
    one, two = stalled.wait_for_count(2)[:2]
    assert two.at - one.at > 2.9
    release.set()
    assert stalled.wait_for_state('completed').json['task']['id'] == first['id']


def test_webhook_that_fails_does_not_stop_others_of_its_host(start: Start, receive: Receive) -> None:
    waits = ', '.join(['"50ms"'] * 8)
    server = start(config(f'retry_after = [{waits}, "1h"]\nprobe_after = "200ms"'))
    receiver = receive(lambda delivery: Answer(500) if delivery.path == '/broken' else ACCEPTED)
    server.register(server.ask(), f'{receiver.origin}/broken')
    # Eight failures, then probes.
    receiver.wait_for_count(11)
    server.register(server.ask(), f'{receiver.origin}/good')
    receiver.wait(lambda found: any(each.path == '/good' for each in found))


def test_retry_after_may_be_a_date(server: PushServer, receive: Receive) -> None:
    left = [Answer(503, header=('Retry-After', formatdate(time.time() + 3, usegmt=True)))]
    receiver = receive(lambda _: left.pop() if left else ACCEPTED)
    server.register(server.ask(), receiver.url)
    first, second = receiver.wait_for_count(2)[:2]
    assert second.at - first.at > 1.5
