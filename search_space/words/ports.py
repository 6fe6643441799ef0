"""Names of a block's tensors in words; study files, formulas and the database use letters."""

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
    """Return the name of a port without its sublayer."""
    name = PORT_NAMES[port]
    return next((name.removeprefix(sublayer) for sublayer in _SUBLAYERS if name.startswith(sublayer)), name)


def joined_port_names(ports: Sequence[Port]) -> str:
    """Return the joined names of ports of one sublayer, such as ``query+value`` or ``FFN up+output``.

    A single port has its full name.
    """
    if len(ports) == 1:
        return PORT_NAMES[ports[0]]
    is_of_ffn = any(PORT_NAMES[port].startswith("FFN ") for port in ports)
    return f"{'FFN ' if is_of_ffn else ''}{'+'.join(map(short_name, ports))}"


def tensor_names(symbols: str) -> str:
    """Return the joined names of ports that are joined by ``+``, such as ``query+value`` for ``q+v``."""
    known = {port.value: port for port in Port}
    ports = [known[one] for one in symbols.split("+") if one in known]
    return joined_port_names(ports) if ports else symbols
