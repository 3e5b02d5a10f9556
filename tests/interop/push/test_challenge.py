"""The draft's check of a URL: nothing is delivered until the receiver has returned the token."""

from urllib.parse import parse_qs, urlsplit

from calls import QUICK, Json, config
from conftest import Receive, Start
from receiver import ACCEPTED, Answer, Delivery


def test_receivers_of_the_draft_confirm_their_url(start: Start, receive: Receive) -> None:
    server = start(config(f'{QUICK}\nchallenge = true'))
    refused = []

    def confirm(delivery: Delivery) -> Answer:
        if delivery.method == 'POST':
            return ACCEPTED
        query = parse_qs(urlsplit(delivery.path).query)
        if len(refused) < 2:
            refused.append(query)
            return Answer(200, 'something else')
        return Answer(200, query['validationToken'][0])

    receiver = receive(confirm)
    task = 'draft'

    def say(text: str) -> Json:
        message = {'role': 'user', 'parts': [{'type': 'text', 'text': text}]}
        return server.call('tasks/send', {'id': task, 'message': message}, version='').result

    say('jump')
    push = {'url': f'{receiver.url}?a=b'}
    params = {'id': task, 'pushNotificationConfig': push}
    assert server.call('tasks/pushNotification/set', params, version='').result == params
    say('approve')
    last = receiver.wait_for_state('completed')
    deliveries = receiver.deliveries
    assert [each.method for each in deliveries[:4]] == ['GET', 'GET', 'GET', 'POST']
    # Once confirmed, it is not asked again.
    assert {each.method for each in deliveries[3:]} == {'POST'}
    queries = [parse_qs(urlsplit(each.path).query) for each in deliveries[:3]]
    assert all(query['a'] == ['b'] and len(query['validationToken'][0]) >= 16 for query in queries)
    assert len({query['validationToken'][0] for query in queries}) == 3
    assert not any('authorization' in each.headers for each in deliveries)
    assert last.path == '/hook?a=b' and last.json['id'] == task


def test_other_generations_are_not_asked(start: Start, receive: Receive) -> None:
    server = start(config(f'{QUICK}\nchallenge = true'))
    receiver = receive()
    server.say('hello', agent='echo', push={'url': receiver.url}).result
    receiver.wait_for_state('completed')
    assert {each.method for each in receiver.deliveries} == {'POST'}
