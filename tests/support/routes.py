"""Every way through questions, and answers that were drawn before."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from search_space.space.random_draw import RandomTrial

Found = TypeVar("Found")


class Route:
    """Chooser that takes the choices of a route, then the first ones, and records the names and choices."""

    def __init__(self, route: Sequence[int]) -> None:
        self.route = tuple(route)
        self.chosen: list[tuple[str, str]] = []
        self.forks: list[int] = []

    def choose(self, name: str, choices: Sequence[str]) -> str:
        index = self.route[len(self.forks)] if len(self.forks) < len(self.route) else 0
        self.forks.append(len(choices))
        self.chosen.append((name, choices[index]))
        return choices[index]


def every_route(walk: Callable[[Route], Found]) -> Iterator[Found]:
    """Yield the result of a walk on every route."""
    route: list[int] = []
    while True:
        walked = Route(route)
        yield walk(walked)
        route = [*route, *([0] * (len(walked.forks) - len(route)))]
        while route and route[-1] + 1 == walked.forks[len(route) - 1]:
            route.pop()
        if not route:
            return
        route[-1] += 1


class DrawnTrial(RandomTrial):
    """Trial that returns drawn choices, and random numbers."""

    def __init__(self, values: Mapping[str, str], seed: int) -> None:
        super().__init__(seed)
        self._values = values

    def suggest_categorical(self, name: str, choices: Sequence[str]) -> str:
        value = self._values[name]
        assert value in choices
        return value
