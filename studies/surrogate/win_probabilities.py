"""What the model of the search expects of trials that have begun."""

from collections.abc import Sequence

from search_space.published import HEAD_ONLY
from studies.records import TrialState
from studies.surrogate.observation import Observation
from studies.surrogate.posterior import SurrogateFitter
from studies.surrogate.size_objective import SizeObjective
from studies.win_probability import WinProbability

FEWEST = 4
"""Other trials of which something was read before anything is said of one."""

_NO_RIVALS = (None, HEAD_ONLY.name)


class WinProbabilities:
    """Asks the model of the search, which knows every reading of the study and how alike configurations do.

    A trial is to beat the best published method of the study, the task head alone aside. Where there is none, or small
    configurations are wanted, it is to beat the best of all other trials, those that are larger aside.
    """

    def __init__(self, believer: SurrogateFitter, sizing: SizeObjective) -> None:
        """Ask a model.

        Args:
            believer: Of the space.
            sizing: Of its goal.
        """
        self._believer = believer
        self._sizing = sizing

    def of(self, history: Sequence[Observation], numbers: Sequence[int]) -> dict[int, WinProbability]:
        """What is to be expected of some trials of a history, without those that fewer than `FEWEST` stand beside.

        Args:
            history: All trials, in the order of their numbers; their readings are all that is known.
            numbers: Of those that are asked about.
        """
        belief = self._believer.belief(history, is_settled=True)
        known = [history[place] for place in belief.trials]
        means, sizes = belief.process.own_means(len(known)), self._sizing.of_trials(known)
        found = {}
        for number in numbers:
            (size,) = self._sizing.of_trials([history[number]])
            others = [
                place
                for place, one in enumerate(known)
                if one.number != number and one.state is not TrialState.FAILED and sizes[place] <= size
            ]
            if len(others) >= FEWEST:
                published = [] if self._sizing.has_goal else [at for at in others if known[at].method not in _NO_RIVALS]
                rival = known[max(published or others, key=means.__getitem__)]
                chance = belief.chance(self._believer.view(history[number]), self._believer.view(rival))
                found[number] = WinProbability(rival=rival.number, is_published=bool(published), chance=chance)
        return found
