"""Names of ports."""

from search_space.dimensions import Port
from search_space.words.ports import PORT_NAMES, ports_words, short_name


def test_every_port_has_a_name_of_its_own() -> None:
    assert set(PORT_NAMES) == set(Port)
    assert len(set(PORT_NAMES.values())) == len(Port)


def test_names_are_the_words_of_papers() -> None:
    of_attention = [Port.Q, Port.K, Port.V, Port.HEAD, Port.O]
    assert [PORT_NAMES[port] for port in of_attention] == ["query", "key", "value", "heads", "attention output"]
    of_ffn = [Port.U, Port.M, Port.F]
    assert [PORT_NAMES[port] for port in of_ffn] == ["FFN up", "FFN hidden", "FFN output"]
    assert short_name(Port.O) == short_name(Port.F) == "output"


def test_several_ports_name_their_sublayer_once() -> None:
    assert ports_words([Port.Q, Port.O]) == "query+output"
    assert ports_words([Port.U, Port.F, Port.NORM]) == "FFN up+output+norm"
    assert ports_words([Port.O]) == "attention output"
