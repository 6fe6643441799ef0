"""The rows that ``init`` looks at, of data that is sorted or repeats itself."""

from studies.init.draft import sample_of


class Numbers:
    """A dataset whose rows are their numbers."""

    def __init__(self, rows):
        self.rows = list(rows)

    def __len__(self):
        return len(self.rows)

    def select(self, indices):
        return Numbers(self.rows[row] for row in indices)


def test_periodic_rows_are_sampled_evenly():
    chosen = sample_of(Numbers(row % 6 for row in range(12_000)), 2_000).rows
    assert len(chosen) == 2_000
    assert all(250 < chosen.count(number) < 420 for number in range(6))


def test_few_rows_are_all_looked_at():
    assert sample_of(Numbers(range(5)), 5).rows == list(range(5))
