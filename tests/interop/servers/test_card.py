"""What an agent says about itself, as a person and as a program read it."""

from conftest import SDK, VERSIONS, Run


def test_the_card_is_shown(run: Run, url: str) -> None:
    shown = dict(line.split(maxsplit=1) for line in run('card').out.splitlines())
    assert shown['name'] == 'Sample agent'
    assert shown['description'] == 'Does what the first word says'
    assert shown['version'] == '1.2.3'
    assert shown['capabilities'] == 'streaming'
    assert shown['interface'].startswith('JSONRPC ') and shown['interface'].endswith(url)


def test_every_version_of_the_card_is_shown(run: Run) -> None:
    interfaces = [line.split()[2] for line in run('card').out.splitlines() if line.startswith('interface')]
    assert sorted(version[:3] for version in interfaces) == sorted(VERSIONS[SDK])


def test_the_card_is_given_in_the_form_of_1_0_whatever_the_agent_speaks(run: Run) -> None:
    card = run('card', '--json').document()
    assert (card['name'], card['version']) == ('Sample agent', '1.2.3')
    spoken = {interface['protocolVersion'][:3] for interface in card['supportedInterfaces']}
    assert spoken == set(VERSIONS[SDK])


def test_the_card_is_found_by_its_own_url(run: Run, url: str) -> None:
    by_its_own = run('card', '--json', agent=f'{url}.well-known/agent-card.json').document()
    assert by_its_own == run('card', '--json').document()


def test_where_no_card_is_nothing_is_found(run: Run, url: str) -> None:
    outcome = run('card', agent=f'{url}nowhere', code=6)
    assert 'there is no agent card' in outcome.err


def test_skills_are_listed(run: Run) -> None:
    assert run('skills').out == 'write: Writes chunks\n  example: write 5\nask: Asks for input\n'


def test_skills_are_given_as_json(run: Run) -> None:
    skills = run('skills', '--json').document()
    assert [skill['id'] for skill in skills] == ['write', 'ask']
    assert skills[0]['examples'] == ['write 5']
