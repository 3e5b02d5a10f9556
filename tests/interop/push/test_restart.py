"""A server that is killed after a commit and before the delivery, and one that stops during a delivery."""

import threading

from helpers import eventually

from calls import QUICK, config
from conftest import Receive, Start
from receiver import ACCEPTED, Answer, Delivery


def test_delivery_survives_kill(start: Start, receive: Receive) -> None:
    # One receiver cannot be reached, the other one fails.
    down = receive()
    down.close()
    is_up = []
    failing = receive(lambda _: ACCEPTED if is_up else Answer(500))
    waits = 'retry_after = ["1s", "1s", "1s", "1s", "1s", "1s", "1s", "1s"]\nprobe_after = "1s"'
    server = start(config(waits))
    tasks = [server.ask() for _ in range(3)]
    for task in tasks:
        server.register(task, down.url)
        server.register(task, failing.url)
        # While the first notification waits for its next attempt.
        server.say('approve', task).result
    failing.wait(lambda found: len({each.id for each in found}) == len(tasks))
    server.kill()
    attempts = len(failing.deliveries)
    before = {each.id: each.body for each in failing.deliveries}
    assert {row[1] for row in server.deliveries()} == set(tasks)

    is_up.append(True)
    up = receive(port=down.port)
    restarted = start(config(waits))
    for receiver in (up, failing):
        receiver.wait(lambda found: [each.state for each in found].count('completed') == len(tasks))
        settled = [each for each in receiver.deliveries if each.state not in ('submitted', 'working')]
        for task in tasks:
            of_task = [each for each in settled if each.json['task']['id'] == task]
            # What was attempted before the end of the first process is attempted again.
            assert list(dict.fromkeys(each.state for each in of_task)) == ['input-required', 'completed']
            assert all(each.id.startswith(f'{task}-') for each in of_task)
    after = {each.id: each.body for each in failing.deliveries[attempts:]}
    assert before.items() <= after.items()
    assert eventually(lambda: True if restarted.deliveries() == [] else None)


def test_delivery_that_a_stop_interrupts_is_made_again(start: Start, receive: Receive) -> None:
    release = threading.Event()

    def stall(_: Delivery) -> Answer:
        release.wait(60)
        return ACCEPTED

    receiver = receive(stall)
    server = start(config(f'{QUICK}\ntimeout = "60s"'))
    server.register(server.ask(), receiver.url)
    receiver.wait_for_count(1)
    # It does not wait for the receiver as long as a delivery may take.
    assert server.stop() == 0
    release.set()
    restarted = start()
    one, two = receiver.wait_for_count(2)
    assert (one.id, one.body) == (two.id, two.body)
    assert eventually(lambda: True if restarted.deliveries() == [] else None)
