"""The tensors of a block by name, as people read them; study files, formulas and the database have the letters."""

from collections.abc import Mapping, Sequence

from search_space.dimensions import Port

PORT_NAMES: Mapping[Port, str] = {
    Port.RES_IN: "attention residual",
    Port.X_ATTN: "attention input",
    Port.CTX: "context",
    Port.Q: "query",
    Port.K: "key",
    Port.V: "value",
    Port.HEAD: "heads",
    Port.CONCAT: "concatenated heads",
    Port.O: "attention output",
    Port.RES_F: "FFN residual",
    Port.X_FFN: "FFN input",
    Port.G: "FFN gate",
    Port.U: "FFN up",
    Port.M: "FFN hidden",
    Port.F: "FFN output",
    Port.SUM: "residual sum",
    Port.NORM: "norm",
    Port.EMBEDDING: "embedded input",
    Port.WEIGHTS: "all weights",
}

_SUBLAYERS = ("attention ", "FFN ")


def short_name(port: Port) -> str:
    """The name of a port where its sublayer is known."""
    name = PORT_NAMES[port]
    return next((name.removeprefix(one) for one in _SUBLAYERS if name.startswith(one)), name)


def joined_port_names(ports: Sequence[Port]) -> str:
    """Ports of one sublayer: a single one by its full name, several joined: ``query+value``, ``FFN up+output``."""
    if len(ports) == 1:
        return PORT_NAMES[ports[0]]
    is_of_ffn = any(PORT_NAMES[port].startswith("FFN ") for port in ports)
    return f"{'FFN ' if is_of_ffn else ''}{'+'.join(map(short_name, ports))}"
