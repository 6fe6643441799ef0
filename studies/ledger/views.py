"""Views of the ledger: the most frequent queries in SQL for both databases.

Views hold no data, so they belong to no version: whenever tables are created or upgraded, the current views replace the
existing ones. Expectations of the surrogate are not available in SQL; `studies.analysis.estimates` has them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import getdoc

from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class Json:
    """JSON dialect of a database.

    Attributes:
        is_sqlite: Whether it is SQLite; else it is PostgreSQL.
    """

    is_sqlite: bool

    def table(self, name: str, source: str, *path: str) -> str:
        """Return the elements of a list at a path of an expression as a named table."""
        if self.is_sqlite:
            return f"json_each({source}, '{_dotted(path)}') AS {name}"
        elements = f"jsonb_array_elements(CAST({source} AS JSONB) #> '{_listed(path)}')"
        return f"{elements} WITH ORDINALITY AS {name}(value, place)"

    def place_of(self, name: str) -> str:
        """Return the index of the element of a row, from 0."""
        return f"{name}.key" if self.is_sqlite else f"CAST({name}.place - 1 AS INTEGER)"

    def of(self, source: str, *path: str, kind: str = "TEXT") -> str:
        """Return the value at a path of an expression as an SQL type."""
        if self.is_sqlite:
            return f"json_extract({source}, '{_dotted(path)}')"
        return f"CAST(CAST({source} AS JSONB) #>> '{_listed(path)}' AS {kind})"


def _dotted(path: Sequence[str]) -> str:
    return ".".join(["$", *path])


def _listed(path: Sequence[str]) -> str:
    return f"{{{','.join(path)}}}"


_NEWEST = "coalesce(trials.score, trials.last_score)"
_NAMED = "coalesce(trials.method, 'discovered')"
_SHARES = (
    "CAST(trials.stored_parameters AS DOUBLE PRECISION) / studies.budget_parameters AS budget_fraction, "
    "CAST(trials.stored_parameters AS DOUBLE PRECISION) / studies.backbone_parameters AS backbone_fraction"
)
_TRIALS = "FROM trials JOIN studies ON studies.id = trials.study_id"
# the cast gives SQLite a number that it can look up
_AGAIN = (
    "LEFT JOIN (SELECT study_id, CAST(coalesce(replicate_of, number) AS INTEGER) AS number, count(*) AS seeds, "
    "avg(score) AS score FROM trials WHERE state = 'complete' GROUP BY study_id, coalesce(replicate_of, number)"
    ") AS again ON again.study_id = trials.study_id AND again.number = trials.number"
)
_MEAN = "coalesce(again.score, trials.last_score)"


def _leaderboard(_: Json) -> str:
    """Return the query of `leaderboard`.

    The trials of every study that have ended, best first; replicates count for the trials that they repeat. Complete
    trials come first, by score. The best of many scores is partly luck. From twelve trials on `deltaspace show` goes by
    what the search model expects of a trial, which SQL cannot.

    Columns:
        study: Name of the study.
        place: 1, 2, 3, … in its study.
        trial: Number of the trial.
        method: Published method that was resized, or `discovered`.
        description: What the configuration is, in words.
        state: `complete`, `pruned` or `failed`.
        score: Final score of a complete trial, the mean over its seeds; newest score of others; null without a reading.
        steps: Optimiser steps at which the score was measured.
        seeds: How often it was trained to the end, replicates with other seeds included.
        first_score: Final score of its first training; null unless that is complete.
        stored_parameters: Trainable parameters that must be kept.
        budget_fraction: Stored parameters per parameter of the budget.
        backbone_fraction: Stored parameters per parameter of the backbone.
        attention_share: Share of the stored parameters at attention, in [0, 1].
        attention_learning_rate: Peak learning rate; null without edits at attention.
        ffn_learning_rate: Peak learning rate; null without edits at the FFN.
        reason: Why it was pruned or failed.
        trial_id: Its key in `trials`; `JOIN … USING (trial_id)` puts two views together.
    """
    by_state = "CASE trials.state WHEN 'complete' THEN 0 WHEN 'pruned' THEN 1 ELSE 2 END"
    by_progress = "CASE trials.state WHEN 'complete' THEN 0 ELSE -trials.steps END"
    return (
        "SELECT studies.name AS study, row_number() OVER (PARTITION BY studies.name ORDER BY "
        f"{by_state}, {by_progress}, -{_MEAN} NULLS LAST, trials.number) AS place, trials.number AS trial, "
        f"{_NAMED} AS method, trials.description, trials.state, {_MEAN} AS score, trials.steps, "
        "coalesce(again.seeds, 0) AS seeds, trials.score AS first_score, trials.stored_parameters, "
        f"{_SHARES}, trials.attention_share, trials.attention_learning_rate, trials.ffn_learning_rate, trials.reason, "
        f"trials.id AS trial_id {_TRIALS} {_AGAIN} WHERE trials.ended_at IS NOT NULL AND trials.replicate_of IS NULL"
    )


def _configurations(json: Json) -> str:
    """Return the query of `configurations`.

    What every trial changes: a row per edit. A side may have two edits; the task head alone has no row.

    Columns:
        study: Name of the study.
        trial: Number of the trial.
        edit: 1, 2, 3, … in its trial.
        side: `attention`, or `ffn` for everything else.
        site: Kind of sublayers: `attn` (every attention), `enc_self`, `dec_self`, `cross`, `ffn`, `stack`, `embed` or
            `global`.
        layers: Blocks of the edit: `all`, `range`, `spindle` or `pattern`; `trials.configuration` has which.
        write: Modified representation.
        read: What the form is computed of; null for constants.
        insertion: `sequential` where it reads what it writes, else `parallel`.
        form: Functional form.
        activation: Nonlinearity; null without one.
        gate: Composition function.
        heads: Blocks of the form: `single`, `query_heads` or `key_value_heads`.
        bottleneck: Prefix length, adapter bottleneck or rank; null without one.
        scale: Fixed scale; null without one.
        trial_id: Its key in `trials`; `JOIN … USING (trial_id)` puts two views together.
    """

    def of(*path: str, kind: str = "TEXT") -> str:
        return json.of("edit.value", *path, kind=kind)

    site, write, read = of("site"), of("write"), of("read")
    return (
        f"SELECT studies.name AS study, trials.number AS trial, {json.place_of('edit')} + 1 AS edit, "
        f"CASE WHEN {site} IN ('attn', 'enc_self', 'dec_self', 'cross') THEN 'attention' ELSE 'ffn' END AS side, "
        f"{site} AS site, coalesce({of('layers', 'name')}, 'all') AS layers, {write} AS write, {read} AS read, "
        f"CASE WHEN {read} IS NULL OR {read} = {write} THEN 'sequential' ELSE 'parallel' END AS insertion, "
        f"{of('form', 'name')} AS form, {of('form', 'activation')} AS activation, {of('gate', 'name')} AS gate, "
        f"coalesce({of('form', 'heads')}, 'single') AS heads, {of('form', 'width', kind='BIGINT')} AS bottleneck, "
        f"CASE WHEN {of('gate', 'name')} = 'scale' THEN {of('gate', 'value', kind='DOUBLE PRECISION')} END AS scale, "
        f"trials.id AS trial_id {_TRIALS} CROSS JOIN {json.table('edit', 'trials.configuration', 'edits')}"
    )


def _curves(json: Json) -> str:
    """Return the query of `curves`.

    What was measured of every trial on the way: a row per reading.

    Columns:
        study: Name of the study.
        trial: Number of the trial.
        step: Optimiser steps done.
        rung: Index of the rung that the step belongs to; null between rungs.
        attempt: Attempt that measured it first.
        score: Score on the validation split; higher is better.
        validation_loss: Loss on the validation split; null where it was not finite.
        train_loss: Mean training loss over the steps since the last reading.
        seconds: Compute time of the trial so far.
        heard_at: When the keeper was told of it, UTC; null where it was not recorded.
        state: State of the trial.
        trial_id: Its key in `trials`; `JOIN … USING (trial_id)` puts two views together.
    """
    loss = json.of("readings.metrics", "validation_loss", kind="DOUBLE PRECISION")
    return (
        "SELECT studies.name AS study, trials.number AS trial, readings.step, readings.rung, readings.attempt, "
        f"readings.score, {loss} AS validation_loss, readings.train_loss, "
        "sum(readings.seconds) OVER (PARTITION BY readings.trial_id ORDER BY readings.step) AS seconds, "
        f"readings.heard_at, trials.state, trials.id AS trial_id {_TRIALS} "
        "JOIN readings ON readings.trial_id = trials.id"
    )


def _budget_use(_: Json) -> str:
    """Return the query of `budget_use`.

    What every trial spends: parameters at either side, FLOPs at inference, steps and time of training.

    Columns:
        study: Name of the study.
        trial: Number of the trial.
        method: Published method that was resized, or `discovered`.
        state: Where it stands.
        score: Final score of a complete trial, the mean over its seeds (of a replicate its own), newest score of
            others; null without a reading.
        budget_parameters: Most stored parameters of a configuration of the study.
        stored_parameters: Trainable parameters that must be kept.
        budget_fraction: Stored parameters per parameter of the budget.
        backbone_fraction: Stored parameters per parameter of the backbone.
        attention_parameters: Stored parameters at attention.
        ffn_parameters: Stored parameters everywhere else.
        attention_share: Share of the stored parameters at attention, in [0, 1].
        trained_parameters: Trainable parameters during training.
        head_parameters: Parameters of the task head, outside the budget.
        extra_flops: FLOPs per token that it adds at inference; null where it was not recorded.
        steps: Optimiser steps of its newest reading; 0 without one.
        seconds: Compute time up to its newest reading.
        trial_id: Its key in `trials`; `JOIN … USING (trial_id)` puts two views together.
    """
    at_attention = "CAST(round(trials.attention_share * trials.stored_parameters) AS BIGINT)"
    return (
        f"SELECT studies.name AS study, trials.number AS trial, {_NAMED} AS method, trials.state, "
        f"coalesce(again.score, {_NEWEST}) AS score, studies.budget_parameters, trials.stored_parameters, {_SHARES}, "
        f"{at_attention} AS attention_parameters, trials.stored_parameters - {at_attention} AS ffn_parameters, "
        "trials.attention_share, trials.trained_parameters, trials.head_parameters, trials.extra_flops, trials.steps, "
        f"coalesce(spent.seconds, 0.0) AS seconds, trials.id AS trial_id {_TRIALS} {_AGAIN} LEFT JOIN ("
        "SELECT trial_id, sum(seconds) AS seconds FROM readings GROUP BY trial_id"
        ") AS spent ON spent.trial_id = trials.id"
    )


def _confirmation_results(json: Json) -> str:
    """Return the query of `confirmation_results`.

    How the contenders of every confirmation did on the test split: a row each. The table `confirmations` has what was
    asked for; a view cannot have the name of a table. Differences are those that `deltaspace confirm` and `show` print:
    the first contender minus this baseline, or this step of an ablation minus the one before. They are null until all
    trials have ended, and of contenders that are no baseline.

    Columns:
        study: Name of the study that is confirmed.
        confirmation: Name of the confirmation.
        place: 1, 2, 3, … among the contenders: the best configurations first, best first.
        label: The published method, else `trial 17`.
        kind: `top` for the best configurations of the study, `baseline`, or `path` of an ablation.
        trial: Number of the trial of the study that it repeats; null for a baseline that it has not completed.
        change: Change from the next contender in an ablation; else null.
        validation_score: What that trial scored in the search, the mean over its seeds.
        planned: Seeds that were asked for.
        seeds: Seeds with which it is complete.
        mean: Mean of its scores on the test split; null while there are none.
        deviation: Sample standard deviation of them; null with fewer than two.
        lowest: Lowest of them.
        highest: Highest of them.
        optimism: `validation_score` minus `mean`.
        difference: Difference in the mean over the seeds that both have.
        low: Lower end of its 95% interval, a bootstrap of pairs.
        high: Upper end of it.
        p_value: Two-sided, of a permutation test of this difference alone.
        adjusted_p: The same by Holm for all differences of the confirmation.
        pairs: Seeds that both have.
        verdict: What the first does to the other: `beats`, `ties`, `not shown`, `loses` or `undecided`.
    """

    def of(*path: str, kind: str = "TEXT") -> str:
        return json.of("contender.value", *path, kind=kind)

    def compared(name: str, kind: str = "DOUBLE PRECISION") -> str:
        return f"{of('comparison', name, kind=kind)} AS {name}"

    place, seeds = json.place_of("contender"), "json_array_length(confirmations.seeds)"
    on_validation = of("validation_score", kind="DOUBLE PRECISION")
    is_top = of("is_top", kind="BOOLEAN")
    scored = (
        f"SELECT trials.study_id, trials.number / {seeds} AS place, trials.score, "
        f"avg(trials.score) OVER (PARTITION BY trials.study_id, trials.number / {seeds}) AS mean "
        "FROM trials JOIN confirmations ON confirmations.study_id = trials.study_id WHERE trials.state = 'complete'"
    )
    spread = (
        "SELECT study_id, place, count(*) AS seeds, avg(score) AS mean, min(score) AS lowest, max(score) AS highest, "
        "sqrt(sum((score - mean) * (score - mean)) / nullif(count(*) - 1, 0)) AS deviation "
        f"FROM ({scored}) AS scored GROUP BY study_id, place"
    )
    return (
        f"SELECT parents.name AS study, studies.name AS confirmation, {place} + 1 AS place, {of('label')} AS label, "
        f"CASE WHEN {of('change')} IS NOT NULL THEN 'path' WHEN {is_top} THEN 'top' ELSE 'baseline' END AS kind, "
        f"{of('trial', kind='INTEGER')} AS trial, {of('change')} AS change, {on_validation} AS validation_score, "
        f"{seeds} AS planned, coalesce(spread.seeds, 0) AS seeds, spread.mean, spread.deviation, spread.lowest, "
        f"spread.highest, {on_validation} - spread.mean AS optimism, "
        f"{compared('difference')}, {compared('low')}, {compared('high')}, {compared('p_value')}, "
        f"{compared('adjusted_p')}, {compared('pairs', 'INTEGER')}, {compared('verdict', 'TEXT')} "
        "FROM confirmations JOIN studies ON studies.id = confirmations.study_id "
        "JOIN studies AS parents ON parents.id = studies.parent_id "
        f"CROSS JOIN {json.table('contender', 'confirmations.contenders')} "
        f"LEFT JOIN ({spread}) AS spread ON spread.study_id = studies.id AND spread.place = {place}"
    )


def _fronts(_: Json) -> str:
    """Return the query of `fronts`.

    Complete trials that score more than all that are no larger; `deltaspace show` goes by estimates. A trial can be on
    the front of either objective.

    Columns:
        study: Name of the study.
        objective: What is to be small: `parameters` or `extra_flops`.
        trial: Number of the trial.
        method: Published method that was resized, or `discovered`.
        description: What the configuration is, in words.
        score: Final score, the mean over its seeds.
        size: Its stored parameters, or its extra FLOPs per token.
        budget_fraction: Stored parameters per parameter of the budget.
        backbone_fraction: Stored parameters per parameter of the backbone.
        trial_id: Its key in `trials`; `JOIN … USING (trial_id)` puts two views together.
    """

    def over(objective: str, size: str) -> str:
        return (
            f"SELECT studies.name AS study, '{objective}' AS objective, trials.number AS trial, {_NAMED} AS method, "
            f"trials.description, again.score, {size} AS size, {_SHARES}, trials.id AS trial_id, max(again.score) "
            f"OVER (PARTITION BY studies.name ORDER BY {size}, again.score DESC, trials.number "
            f"ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before {_TRIALS} {_AGAIN} "
            f"WHERE trials.state = 'complete' AND trials.replicate_of IS NULL AND {size} IS NOT NULL"
        )

    both = f"{over('parameters', 'trials.stored_parameters')} UNION ALL {over('extra_flops', 'trials.extra_flops')}"
    columns = "study, objective, trial, method, description, score, size, budget_fraction, backbone_fraction, trial_id"
    return f"SELECT {columns} FROM ({both}) AS sized WHERE before IS NULL OR score > before"


VIEWS: Mapping[str, Callable[[Json], str]] = {
    "leaderboard": _leaderboard,
    "configurations": _configurations,
    "curves": _curves,
    "budget_use": _budget_use,
    "confirmation_results": _confirmation_results,
    "fronts": _fronts,
}
"""Functions from the JSON dialect to the query, by the names of the views; the docstrings document rows and columns."""


def about(view: str) -> str:
    """Return the meaning of a row of a view."""
    _, paragraph, *_ = (getdoc(VIEWS[view]) or "").split("\n\n")
    return " ".join(paragraph.split())


def statements(dialect: str) -> tuple[str, ...]:
    """Return the statements that create the views on ``sqlite`` or ``postgresql``."""
    json = Json(dialect == "sqlite")
    return tuple(f"CREATE VIEW {name} AS {query_of(json)}" for name, query_of in VIEWS.items())


def drop_views(connection: Connection) -> None:
    """Drop the views, which would prevent changes of tables."""
    for name in VIEWS:
        connection.exec_driver_sql(f"DROP VIEW IF EXISTS {name}")


def create_views(connection: Connection) -> None:
    """Create the current views."""
    for statement in statements(connection.dialect.name):
        connection.exec_driver_sql(statement)
