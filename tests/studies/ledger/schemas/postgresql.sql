CREATE TABLE deltaspace_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT pk_deltaspace_version PRIMARY KEY (version_num)
);

CREATE TABLE studies (
    id SERIAL NOT NULL,
    name TEXT NOT NULL,
    specification JSON NOT NULL,
    backbone TEXT NOT NULL,
    backbone_parameters BIGINT NOT NULL,
    budget_parameters BIGINT NOT NULL,
    metric TEXT NOT NULL,
    seed BIGINT NOT NULL,
    epoch INTEGER NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    kind TEXT DEFAULT 'search' NOT NULL,
    parent_id INTEGER,
    folder TEXT,
    holder TEXT,
    held_until TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_studies PRIMARY KEY (id),
    CONSTRAINT ck_studies_epoch CHECK (epoch >= 0),
    CONSTRAINT ck_studies_parameters CHECK (backbone_parameters > 0 AND budget_parameters > 0),
    CONSTRAINT ck_studies_kind CHECK (kind IN ('search', 'confirmation')),
    CONSTRAINT ck_studies_parent_exactly_of_confirmations CHECK ((kind = 'confirmation') = (parent_id IS NOT NULL)),
    CONSTRAINT uq_studies_name UNIQUE (name),
    CONSTRAINT fk_studies_parent_id_studies FOREIGN KEY(parent_id) REFERENCES studies (id)
);

CREATE TABLE confirmations (
    study_id INTEGER NOT NULL,
    top INTEGER NOT NULL,
    against JSON NOT NULL,
    seeds JSON NOT NULL,
    contenders JSON NOT NULL,
    left_out JSON NOT NULL,
    most_parameters BIGINT,
    CONSTRAINT pk_confirmations PRIMARY KEY (study_id),
    CONSTRAINT ck_confirmations_top CHECK (top >= 1),
    CONSTRAINT ck_confirmations_most_parameters CHECK (most_parameters >= 0),
    CONSTRAINT fk_confirmations_study_id_studies FOREIGN KEY(study_id) REFERENCES studies (id)
);

CREATE TABLE events (
    id SERIAL NOT NULL,
    study_id INTEGER NOT NULL,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    kind TEXT NOT NULL,
    trial INTEGER,
    text TEXT NOT NULL,
    CONSTRAINT pk_events PRIMARY KEY (id),
    CONSTRAINT fk_events_study_id_studies FOREIGN KEY(study_id) REFERENCES studies (id)
);

CREATE INDEX ix_events_study_id ON events (study_id);

CREATE TABLE trials (
    id SERIAL NOT NULL,
    study_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    state TEXT NOT NULL,
    score DOUBLE PRECISION,
    reason TEXT,
    steps INTEGER NOT NULL,
    last_score DOUBLE PRECISION,
    attempt INTEGER NOT NULL,
    origin TEXT NOT NULL,
    method TEXT,
    description TEXT NOT NULL,
    attention_form TEXT,
    attention_write TEXT,
    attention_insertion TEXT,
    attention_gate TEXT,
    attention_heads TEXT,
    attention_bottleneck INTEGER,
    attention_activation TEXT,
    attention_scale DOUBLE PRECISION,
    attention_learning_rate DOUBLE PRECISION,
    ffn_form TEXT,
    ffn_write TEXT,
    ffn_insertion TEXT,
    ffn_gate TEXT,
    ffn_heads TEXT,
    ffn_bottleneck INTEGER,
    ffn_activation TEXT,
    ffn_scale DOUBLE PRECISION,
    ffn_learning_rate DOUBLE PRECISION,
    attention_share DOUBLE PRECISION NOT NULL,
    stored_parameters BIGINT NOT NULL,
    trained_parameters BIGINT NOT NULL,
    head_parameters BIGINT NOT NULL,
    seed BIGINT NOT NULL,
    fingerprint TEXT NOT NULL,
    configuration JSON NOT NULL,
    proposal JSON NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    ended_at TIMESTAMP WITH TIME ZONE,
    replicate_of INTEGER,
    extra_flops BIGINT,
    CONSTRAINT pk_trials PRIMARY KEY (id),
    CONSTRAINT uq_trials_study_id_number UNIQUE (study_id, number),
    CONSTRAINT uq_trials_study_id_fingerprint UNIQUE (study_id, fingerprint),
    CONSTRAINT ck_trials_number CHECK (number >= 0),
    CONSTRAINT ck_trials_state CHECK (state IN ('queued', 'running', 'complete', 'pruned', 'failed')),
    CONSTRAINT ck_trials_origin CHECK (origin IN ('published', 'proposed', 'replicate')),
    CONSTRAINT ck_trials_score_exactly_when_complete CHECK ((state = 'complete') = (score IS NOT NULL)),
    CONSTRAINT ck_trials_reason_exactly_when_cut CHECK ((state IN ('pruned', 'failed')) = (reason IS NOT NULL)),
    CONSTRAINT ck_trials_ended_exactly_when_terminal CHECK ((state IN ('complete', 'pruned', 'failed')) = (ended_at IS NOT NULL)),
    CONSTRAINT ck_trials_attempt CHECK (attempt >= CASE WHEN state = 'queued' THEN 0 ELSE 1 END),
    CONSTRAINT ck_trials_last_score_exactly_with_steps CHECK (steps >= 0 AND (steps > 0) = (last_score IS NOT NULL)),
    CONSTRAINT ck_trials_score_is_finite CHECK (score BETWEEN -1e308 AND 1e308),
    CONSTRAINT ck_trials_last_score_is_finite CHECK (last_score BETWEEN -1e308 AND 1e308),
    CONSTRAINT ck_trials_attention_share CHECK (attention_share BETWEEN 0 AND 1),
    CONSTRAINT ck_trials_parameters CHECK (stored_parameters >= 0 AND trained_parameters >= 0 AND head_parameters >= 0),
    CONSTRAINT ck_trials_attention_dimensions CHECK ((attention_form IS NULL) = (attention_write IS NULL) AND (attention_form IS NULL) = (attention_insertion IS NULL) AND (attention_form IS NULL) = (attention_gate IS NULL) AND (attention_form IS NULL) = (attention_heads IS NULL) AND (attention_form IS NULL) = (attention_learning_rate IS NULL) AND (attention_form IS NOT NULL OR (attention_bottleneck IS NULL AND attention_activation IS NULL AND attention_scale IS NULL))),
    CONSTRAINT ck_trials_ffn_dimensions CHECK ((ffn_form IS NULL) = (ffn_write IS NULL) AND (ffn_form IS NULL) = (ffn_insertion IS NULL) AND (ffn_form IS NULL) = (ffn_gate IS NULL) AND (ffn_form IS NULL) = (ffn_heads IS NULL) AND (ffn_form IS NULL) = (ffn_learning_rate IS NULL) AND (ffn_form IS NOT NULL OR (ffn_bottleneck IS NULL AND ffn_activation IS NULL AND ffn_scale IS NULL))),
    CONSTRAINT ck_trials_replicate_of_exactly_of_replicates CHECK ((origin = 'replicate') = (replicate_of IS NOT NULL) AND replicate_of BETWEEN 0 AND number - 1),
    CONSTRAINT ck_trials_extra_flops CHECK (extra_flops >= 0),
    CONSTRAINT fk_trials_study_id_studies FOREIGN KEY(study_id) REFERENCES studies (id)
);

CREATE INDEX ix_trials_study_id_state ON trials (study_id, state);

CREATE TABLE artefacts (
    id SERIAL NOT NULL,
    trial_id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    step INTEGER NOT NULL,
    path TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    CONSTRAINT pk_artefacts PRIMARY KEY (id),
    CONSTRAINT uq_artefacts_trial_id_kind_step UNIQUE (trial_id, kind, step),
    CONSTRAINT ck_artefacts_kind CHECK (kind IN ('snapshot', 'delta')),
    CONSTRAINT ck_artefacts_sizes CHECK (step >= 0 AND size_bytes >= 0),
    CONSTRAINT fk_artefacts_trial_id_trials FOREIGN KEY(trial_id) REFERENCES trials (id)
);

CREATE TABLE attempts (
    trial_id INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    worker TEXT NOT NULL,
    lease_expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    started_at TIMESTAMP WITH TIME ZONE NOT NULL,
    ended_at TIMESTAMP WITH TIME ZONE,
    ending TEXT,
    CONSTRAINT pk_attempts PRIMARY KEY (trial_id, attempt),
    CONSTRAINT ck_attempts_attempt CHECK (attempt >= 1),
    CONSTRAINT ck_attempts_ending CHECK (ending IN ('complete', 'pruned', 'failed', 'lost')),
    CONSTRAINT ck_attempts_ended_exactly_with_ending CHECK ((ending IS NULL) = (ended_at IS NULL)),
    CONSTRAINT fk_attempts_trial_id_trials FOREIGN KEY(trial_id) REFERENCES trials (id)
);

CREATE UNIQUE INDEX uq_attempts_one_final ON attempts (trial_id) WHERE ending IN ('complete', 'pruned', 'failed');

CREATE UNIQUE INDEX uq_attempts_one_open ON attempts (trial_id) WHERE ended_at IS NULL;

CREATE TABLE readings (
    trial_id INTEGER NOT NULL,
    step INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    score DOUBLE PRECISION NOT NULL,
    metrics JSON NOT NULL,
    train_loss DOUBLE PRECISION NOT NULL,
    seconds DOUBLE PRECISION NOT NULL,
    rung INTEGER,
    heard_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_readings PRIMARY KEY (trial_id, step),
    CONSTRAINT fk_readings_trial_id_attempt_attempts FOREIGN KEY(trial_id, attempt) REFERENCES attempts (trial_id, attempt),
    CONSTRAINT ck_readings_step CHECK (step >= 1),
    CONSTRAINT ck_readings_rung CHECK (rung >= 0),
    CONSTRAINT ck_readings_score_is_finite CHECK (score BETWEEN -1e308 AND 1e308),
    CONSTRAINT ck_readings_train_loss_is_finite CHECK (train_loss BETWEEN -1e308 AND 1e308),
    CONSTRAINT ck_readings_seconds CHECK (seconds BETWEEN 0 AND 1e308)
);

CREATE TABLE examples (
    trial_id INTEGER NOT NULL,
    step INTEGER NOT NULL,
    losses BYTEA NOT NULL,
    correct BYTEA,
    CONSTRAINT pk_examples PRIMARY KEY (trial_id, step),
    CONSTRAINT fk_examples_trial_id_step_readings FOREIGN KEY(trial_id, step) REFERENCES readings (trial_id, step),
    CONSTRAINT ck_examples_losses CHECK (length(losses) > 0)
);

CREATE VIEW leaderboard AS SELECT studies.name AS study, row_number() OVER (PARTITION BY studies.name ORDER BY CASE trials.state WHEN 'complete' THEN 0 WHEN 'pruned' THEN 1 ELSE 2 END, CASE trials.state WHEN 'complete' THEN 0 ELSE -trials.steps END, -coalesce(again.score, trials.last_score) NULLS LAST, trials.number) AS place, trials.number AS trial, coalesce(trials.method, 'discovered') AS method, trials.description, trials.state, coalesce(again.score, trials.last_score) AS score, trials.steps, coalesce(again.seeds, 0) AS seeds, trials.score AS first_score, trials.stored_parameters, CAST(trials.stored_parameters AS DOUBLE PRECISION) / studies.budget_parameters AS budget_fraction, CAST(trials.stored_parameters AS DOUBLE PRECISION) / studies.backbone_parameters AS backbone_fraction, trials.attention_share, trials.attention_learning_rate, trials.ffn_learning_rate, trials.reason, trials.id AS trial_id FROM trials JOIN studies ON studies.id = trials.study_id LEFT JOIN (SELECT study_id, CAST(coalesce(replicate_of, number) AS INTEGER) AS number, count(*) AS seeds, avg(score) AS score FROM trials WHERE state = 'complete' GROUP BY study_id, coalesce(replicate_of, number)) AS again ON again.study_id = trials.study_id AND again.number = trials.number WHERE trials.ended_at IS NOT NULL AND trials.replicate_of IS NULL;

CREATE VIEW configurations AS SELECT studies.name AS study, trials.number AS trial, CAST(edit.place - 1 AS INTEGER) + 1 AS edit, CASE WHEN CAST(CAST(edit.value AS JSONB) #>> '{site}' AS TEXT) IN ('attn', 'enc_self', 'dec_self', 'cross') THEN 'attention' ELSE 'ffn' END AS side, CAST(CAST(edit.value AS JSONB) #>> '{site}' AS TEXT) AS site, coalesce(CAST(CAST(edit.value AS JSONB) #>> '{layers,name}' AS TEXT), 'all') AS layers, CAST(CAST(edit.value AS JSONB) #>> '{write}' AS TEXT) AS write, CAST(CAST(edit.value AS JSONB) #>> '{read}' AS TEXT) AS read, CASE WHEN CAST(CAST(edit.value AS JSONB) #>> '{read}' AS TEXT) IS NULL OR CAST(CAST(edit.value AS JSONB) #>> '{read}' AS TEXT) = CAST(CAST(edit.value AS JSONB) #>> '{write}' AS TEXT) THEN 'sequential' ELSE 'parallel' END AS insertion, CAST(CAST(edit.value AS JSONB) #>> '{form,name}' AS TEXT) AS form, CAST(CAST(edit.value AS JSONB) #>> '{form,activation}' AS TEXT) AS activation, CAST(CAST(edit.value AS JSONB) #>> '{gate,name}' AS TEXT) AS gate, coalesce(CAST(CAST(edit.value AS JSONB) #>> '{form,heads}' AS TEXT), 'single') AS heads, CAST(CAST(edit.value AS JSONB) #>> '{form,width}' AS BIGINT) AS bottleneck, CASE WHEN CAST(CAST(edit.value AS JSONB) #>> '{gate,name}' AS TEXT) = 'scale' THEN CAST(CAST(edit.value AS JSONB) #>> '{gate,value}' AS DOUBLE PRECISION) END AS scale, trials.id AS trial_id FROM trials JOIN studies ON studies.id = trials.study_id CROSS JOIN jsonb_array_elements(CAST(trials.configuration AS JSONB) #> '{edits}') WITH ORDINALITY AS edit(value, place);

CREATE VIEW curves AS SELECT studies.name AS study, trials.number AS trial, readings.step, readings.rung, readings.attempt, readings.score, CAST(CAST(readings.metrics AS JSONB) #>> '{validation_loss}' AS DOUBLE PRECISION) AS validation_loss, readings.train_loss, sum(readings.seconds) OVER (PARTITION BY readings.trial_id ORDER BY readings.step) AS seconds, readings.heard_at, trials.state, trials.id AS trial_id FROM trials JOIN studies ON studies.id = trials.study_id JOIN readings ON readings.trial_id = trials.id;

CREATE VIEW budget_use AS SELECT studies.name AS study, trials.number AS trial, coalesce(trials.method, 'discovered') AS method, trials.state, coalesce(again.score, coalesce(trials.score, trials.last_score)) AS score, studies.budget_parameters, trials.stored_parameters, CAST(trials.stored_parameters AS DOUBLE PRECISION) / studies.budget_parameters AS budget_fraction, CAST(trials.stored_parameters AS DOUBLE PRECISION) / studies.backbone_parameters AS backbone_fraction, CAST(round(trials.attention_share * trials.stored_parameters) AS BIGINT) AS attention_parameters, trials.stored_parameters - CAST(round(trials.attention_share * trials.stored_parameters) AS BIGINT) AS ffn_parameters, trials.attention_share, trials.trained_parameters, trials.head_parameters, trials.extra_flops, trials.steps, coalesce(spent.seconds, 0.0) AS seconds, trials.id AS trial_id FROM trials JOIN studies ON studies.id = trials.study_id LEFT JOIN (SELECT study_id, CAST(coalesce(replicate_of, number) AS INTEGER) AS number, count(*) AS seeds, avg(score) AS score FROM trials WHERE state = 'complete' GROUP BY study_id, coalesce(replicate_of, number)) AS again ON again.study_id = trials.study_id AND again.number = trials.number LEFT JOIN (SELECT trial_id, sum(seconds) AS seconds FROM readings GROUP BY trial_id) AS spent ON spent.trial_id = trials.id;

CREATE VIEW confirmation_results AS SELECT parents.name AS study, studies.name AS confirmation, CAST(contender.place - 1 AS INTEGER) + 1 AS place, CAST(CAST(contender.value AS JSONB) #>> '{label}' AS TEXT) AS label, CASE WHEN CAST(CAST(contender.value AS JSONB) #>> '{change}' AS TEXT) IS NOT NULL THEN 'path' WHEN CAST(CAST(contender.value AS JSONB) #>> '{is_top}' AS BOOLEAN) THEN 'top' ELSE 'baseline' END AS kind, CAST(CAST(contender.value AS JSONB) #>> '{trial}' AS INTEGER) AS trial, CAST(CAST(contender.value AS JSONB) #>> '{change}' AS TEXT) AS change, CAST(CAST(contender.value AS JSONB) #>> '{validation_score}' AS DOUBLE PRECISION) AS validation_score, json_array_length(confirmations.seeds) AS planned, coalesce(spread.seeds, 0) AS seeds, spread.mean, spread.deviation, spread.lowest, spread.highest, CAST(CAST(contender.value AS JSONB) #>> '{validation_score}' AS DOUBLE PRECISION) - spread.mean AS optimism, CAST(CAST(contender.value AS JSONB) #>> '{comparison,difference}' AS DOUBLE PRECISION) AS difference, CAST(CAST(contender.value AS JSONB) #>> '{comparison,low}' AS DOUBLE PRECISION) AS low, CAST(CAST(contender.value AS JSONB) #>> '{comparison,high}' AS DOUBLE PRECISION) AS high, CAST(CAST(contender.value AS JSONB) #>> '{comparison,p_value}' AS DOUBLE PRECISION) AS p_value, CAST(CAST(contender.value AS JSONB) #>> '{comparison,adjusted_p}' AS DOUBLE PRECISION) AS adjusted_p, CAST(CAST(contender.value AS JSONB) #>> '{comparison,pairs}' AS INTEGER) AS pairs, CAST(CAST(contender.value AS JSONB) #>> '{comparison,verdict}' AS TEXT) AS verdict FROM confirmations JOIN studies ON studies.id = confirmations.study_id JOIN studies AS parents ON parents.id = studies.parent_id CROSS JOIN jsonb_array_elements(CAST(confirmations.contenders AS JSONB) #> '{}') WITH ORDINALITY AS contender(value, place) LEFT JOIN (SELECT study_id, place, count(*) AS seeds, avg(score) AS mean, min(score) AS lowest, max(score) AS highest, sqrt(sum((score - mean) * (score - mean)) / nullif(count(*) - 1, 0)) AS deviation FROM (SELECT trials.study_id, trials.number / json_array_length(confirmations.seeds) AS place, trials.score, avg(trials.score) OVER (PARTITION BY trials.study_id, trials.number / json_array_length(confirmations.seeds)) AS mean FROM trials JOIN confirmations ON confirmations.study_id = trials.study_id WHERE trials.state = 'complete') AS scored GROUP BY study_id, place) AS spread ON spread.study_id = studies.id AND spread.place = CAST(contender.place - 1 AS INTEGER);

CREATE VIEW fronts AS SELECT study, objective, trial, method, description, score, size, budget_fraction, backbone_fraction, trial_id FROM (SELECT studies.name AS study, 'parameters' AS objective, trials.number AS trial, coalesce(trials.method, 'discovered') AS method, trials.description, again.score, trials.stored_parameters AS size, CAST(trials.stored_parameters AS DOUBLE PRECISION) / studies.budget_parameters AS budget_fraction, CAST(trials.stored_parameters AS DOUBLE PRECISION) / studies.backbone_parameters AS backbone_fraction, trials.id AS trial_id, max(again.score) OVER (PARTITION BY studies.name ORDER BY trials.stored_parameters, again.score DESC, trials.number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM trials JOIN studies ON studies.id = trials.study_id LEFT JOIN (SELECT study_id, CAST(coalesce(replicate_of, number) AS INTEGER) AS number, count(*) AS seeds, avg(score) AS score FROM trials WHERE state = 'complete' GROUP BY study_id, coalesce(replicate_of, number)) AS again ON again.study_id = trials.study_id AND again.number = trials.number WHERE trials.state = 'complete' AND trials.replicate_of IS NULL AND trials.stored_parameters IS NOT NULL UNION ALL SELECT studies.name AS study, 'extra_flops' AS objective, trials.number AS trial, coalesce(trials.method, 'discovered') AS method, trials.description, again.score, trials.extra_flops AS size, CAST(trials.stored_parameters AS DOUBLE PRECISION) / studies.budget_parameters AS budget_fraction, CAST(trials.stored_parameters AS DOUBLE PRECISION) / studies.backbone_parameters AS backbone_fraction, trials.id AS trial_id, max(again.score) OVER (PARTITION BY studies.name ORDER BY trials.extra_flops, again.score DESC, trials.number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM trials JOIN studies ON studies.id = trials.study_id LEFT JOIN (SELECT study_id, CAST(coalesce(replicate_of, number) AS INTEGER) AS number, count(*) AS seeds, avg(score) AS score FROM trials WHERE state = 'complete' GROUP BY study_id, coalesce(replicate_of, number)) AS again ON again.study_id = trials.study_id AND again.number = trials.number WHERE trials.state = 'complete' AND trials.replicate_of IS NULL AND trials.extra_flops IS NOT NULL) AS sized WHERE before IS NULL OR score > before;
