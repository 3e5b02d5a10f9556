"""The agent card as text and as JSON."""

from conftest import SDK, VERSIONS, Run


def test_card_is_printed(run: Run, url: str) -> None:
    shown = dict(line.split(maxsplit=1) for line in run('card').out.splitlines())
    assert shown['name'] == 'Sample agent'
    assert shown['description'] == 'Does what the first word says'
    assert shown['version'] == '1.2.3'
    assert shown['capabilities'] == 'streaming'
    assert shown['interface'].startswith('JSONRPC ') and shown['interface'].endswith(url)


def test_every_protocol_version_of_the_card_is_printed(run: Run) -> None:
    interfaces = [line.split()[2] for line in run('card').out.splitlines() if line.startswith('interface')]
    assert sorted(version[:3] for version in interfaces) == sorted(VERSIONS[SDK])


def test_json_card_has_the_1_0_format_for_every_protocol_version(run: Run) -> None:
    card = run('card', '--json').document()
    assert (card['name'], card['version']) == ('Sample agent', '1.2.3')
    versions = {interface['protocolVersion'][:3] for interface in card['supportedInterfaces']}
    assert versions == set(VERSIONS[SDK])


def test_card_is_found_by_its_own_url(run: Run, url: str) -> None:
    by_its_url = run('card', '--json', agent=f'{url}.well-known/agent-card.json').document()
    assert by_its_url == run('card', '--json').document()


def test_missing_card_is_reported_as_not_found(run: Run, url: str) -> None:
    outcome = run('card', agent=f'{url}nowhere', code=6)
    assert 'there is no agent card' in outcome.err


def test_skills_are_printed(run: Run) -> None:
    assert run('skills').out == 'write: Writes chunks\n  example: write 5\nask: Asks for input\n'


def test_skills_are_printed_as_json(run: Run) -> None:
    skills = run('skills', '--json').document()
    assert [skill['id'] for skill in skills] == ['write', 'ask']
    assert skills[0]['examples'] == ['write 5']
