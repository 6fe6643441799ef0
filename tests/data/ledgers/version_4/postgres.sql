SELECT pg_catalog.set_config('search_path', '', false);
CREATE FUNCTION public.deltaspace_refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'a terminal trial never changes' USING ERRCODE = 'integrity_constraint_violation'; END $$;
CREATE TABLE public.artefacts (
    id integer NOT NULL,
    trial_id integer NOT NULL,
    kind text NOT NULL,
    step integer NOT NULL,
    path text NOT NULL,
    sha256 text NOT NULL,
    size_bytes bigint NOT NULL,
    CONSTRAINT ck_artefacts_kind CHECK ((kind = ANY (ARRAY['snapshot'::text, 'delta'::text]))),
    CONSTRAINT ck_artefacts_sizes CHECK (((step >= 0) AND (size_bytes >= 0)))
);
CREATE SEQUENCE public.artefacts_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.artefacts_id_seq OWNED BY public.artefacts.id;
CREATE TABLE public.attempts (
    trial_id integer NOT NULL,
    attempt integer NOT NULL,
    worker text NOT NULL,
    lease_expires_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    ending text,
    CONSTRAINT ck_attempts_attempt CHECK ((attempt >= 1)),
    CONSTRAINT ck_attempts_ended_exactly_with_ending CHECK (((ending IS NULL) = (ended_at IS NULL))),
    CONSTRAINT ck_attempts_ending CHECK ((ending = ANY (ARRAY['complete'::text, 'pruned'::text, 'failed'::text, 'lost'::text])))
);
CREATE TABLE public.readings (
    trial_id integer NOT NULL,
    step integer NOT NULL,
    attempt integer NOT NULL,
    score double precision NOT NULL,
    metrics json NOT NULL,
    train_loss double precision NOT NULL,
    seconds double precision NOT NULL,
    rung integer,
    heard_at timestamp with time zone,
    CONSTRAINT ck_readings_rung CHECK ((rung >= 0)),
    CONSTRAINT ck_readings_score_is_finite CHECK (((score >= ('-100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000'::numeric)::double precision) AND (score <= ('100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000'::numeric)::double precision))),
    CONSTRAINT ck_readings_seconds CHECK (((seconds >= (0)::double precision) AND (seconds <= ('100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000'::numeric)::double precision))),
    CONSTRAINT ck_readings_step CHECK ((step >= 1)),
    CONSTRAINT ck_readings_train_loss_is_finite CHECK (((train_loss >= ('-100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000'::numeric)::double precision) AND (train_loss <= ('100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000'::numeric)::double precision)))
);
CREATE TABLE public.studies (
    id integer NOT NULL,
    name text NOT NULL,
    specification json NOT NULL,
    backbone text NOT NULL,
    backbone_parameters bigint NOT NULL,
    budget_parameters bigint NOT NULL,
    metric text NOT NULL,
    seed bigint NOT NULL,
    epoch integer NOT NULL,
    created_at timestamp with time zone NOT NULL,
    kind text DEFAULT 'search'::text NOT NULL,
    parent_id integer,
    folder text,
    holder text,
    held_until timestamp with time zone,
    CONSTRAINT ck_studies_epoch CHECK ((epoch >= 0)),
    CONSTRAINT ck_studies_kind CHECK ((kind = ANY (ARRAY['search'::text, 'confirmation'::text]))),
    CONSTRAINT ck_studies_parameters CHECK (((backbone_parameters > 0) AND (budget_parameters > 0))),
    CONSTRAINT ck_studies_parent_exactly_of_confirmations CHECK (((kind = 'confirmation'::text) = (parent_id IS NOT NULL)))
);
CREATE TABLE public.trials (
    id integer NOT NULL,
    study_id integer NOT NULL,
    number integer NOT NULL,
    state text NOT NULL,
    score double precision,
    reason text,
    steps integer NOT NULL,
    last_score double precision,
    attempt integer NOT NULL,
    origin text NOT NULL,
    method text,
    description text NOT NULL,
    attention_form text,
    attention_write text,
    attention_insertion text,
    attention_gate text,
    attention_heads text,
    attention_bottleneck integer,
    attention_activation text,
    attention_scale double precision,
    attention_learning_rate double precision,
    ffn_form text,
    ffn_write text,
    ffn_insertion text,
    ffn_gate text,
    ffn_heads text,
    ffn_bottleneck integer,
    ffn_activation text,
    ffn_scale double precision,
    ffn_learning_rate double precision,
    attention_share double precision NOT NULL,
    stored_parameters bigint NOT NULL,
    trained_parameters bigint NOT NULL,
    head_parameters bigint NOT NULL,
    seed bigint NOT NULL,
    fingerprint text NOT NULL,
    configuration json NOT NULL,
    proposal json NOT NULL,
    created_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    replicate_of integer,
    extra_flops bigint,
    CONSTRAINT ck_trials_attempt CHECK ((attempt >=
CASE
    WHEN (state = 'queued'::text) THEN 0
    ELSE 1
END)),
    CONSTRAINT ck_trials_attention_dimensions CHECK ((((attention_form IS NULL) = (attention_write IS NULL)) AND ((attention_form IS NULL) = (attention_insertion IS NULL)) AND ((attention_form IS NULL) = (attention_gate IS NULL)) AND ((attention_form IS NULL) = (attention_heads IS NULL)) AND ((attention_form IS NULL) = (attention_learning_rate IS NULL)) AND ((attention_form IS NOT NULL) OR ((attention_bottleneck IS NULL) AND (attention_activation IS NULL) AND (attention_scale IS NULL))))),
    CONSTRAINT ck_trials_attention_share CHECK (((attention_share >= (0)::double precision) AND (attention_share <= (1)::double precision))),
    CONSTRAINT ck_trials_ended_exactly_when_terminal CHECK (((state = ANY (ARRAY['complete'::text, 'pruned'::text, 'failed'::text])) = (ended_at IS NOT NULL))),
    CONSTRAINT ck_trials_extra_flops CHECK ((extra_flops >= 0)),
    CONSTRAINT ck_trials_ffn_dimensions CHECK ((((ffn_form IS NULL) = (ffn_write IS NULL)) AND ((ffn_form IS NULL) = (ffn_insertion IS NULL)) AND ((ffn_form IS NULL) = (ffn_gate IS NULL)) AND ((ffn_form IS NULL) = (ffn_heads IS NULL)) AND ((ffn_form IS NULL) = (ffn_learning_rate IS NULL)) AND ((ffn_form IS NOT NULL) OR ((ffn_bottleneck IS NULL) AND (ffn_activation IS NULL) AND (ffn_scale IS NULL))))),
    CONSTRAINT ck_trials_last_score_exactly_with_steps CHECK (((steps >= 0) AND ((steps > 0) = (last_score IS NOT NULL)))),
    CONSTRAINT ck_trials_last_score_is_finite CHECK (((last_score >= ('-100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000'::numeric)::double precision) AND (last_score <= ('100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000'::numeric)::double precision))),
    CONSTRAINT ck_trials_number CHECK ((number >= 0)),
    CONSTRAINT ck_trials_origin CHECK ((origin = ANY (ARRAY['published'::text, 'proposed'::text, 'replicate'::text]))),
    CONSTRAINT ck_trials_parameters CHECK (((stored_parameters >= 0) AND (trained_parameters >= 0) AND (head_parameters >= 0))),
    CONSTRAINT ck_trials_reason_exactly_when_cut CHECK (((state = ANY (ARRAY['pruned'::text, 'failed'::text])) = (reason IS NOT NULL))),
    CONSTRAINT ck_trials_replicate_of_exactly_of_replicates CHECK ((((origin = 'replicate'::text) = (replicate_of IS NOT NULL)) AND ((replicate_of >= 0) AND (replicate_of <= (number - 1))))),
    CONSTRAINT ck_trials_score_exactly_when_complete CHECK (((state = 'complete'::text) = (score IS NOT NULL))),
    CONSTRAINT ck_trials_score_is_finite CHECK (((score >= ('-100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000'::numeric)::double precision) AND (score <= ('100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000'::numeric)::double precision))),
    CONSTRAINT ck_trials_state CHECK ((state = ANY (ARRAY['queued'::text, 'running'::text, 'complete'::text, 'pruned'::text, 'failed'::text])))
);
CREATE VIEW public.budget_use AS
 SELECT studies.name AS study,
    trials.number AS trial,
    COALESCE(trials.method, 'discovered'::text) AS method,
    trials.state,
    COALESCE(trials.score, trials.last_score) AS score,
    studies.budget_parameters,
    trials.stored_parameters,
    ((trials.stored_parameters)::double precision / (studies.budget_parameters)::double precision) AS budget_fraction,
    ((trials.stored_parameters)::double precision / (studies.backbone_parameters)::double precision) AS backbone_fraction,
    (round((trials.attention_share * (trials.stored_parameters)::double precision)))::bigint AS attention_parameters,
    (trials.stored_parameters - (round((trials.attention_share * (trials.stored_parameters)::double precision)))::bigint) AS ffn_parameters,
    trials.attention_share,
    trials.trained_parameters,
    trials.head_parameters,
    trials.extra_flops,
    trials.steps,
    COALESCE(spent.seconds, (0.0)::double precision) AS seconds,
    trials.id AS trial_id
   FROM ((public.trials
     JOIN public.studies ON ((studies.id = trials.study_id)))
     LEFT JOIN ( SELECT readings.trial_id,
            sum(readings.seconds) AS seconds
           FROM public.readings
          GROUP BY readings.trial_id) spent ON ((spent.trial_id = trials.id)));
CREATE VIEW public.configurations AS
 SELECT studies.name AS study,
    trials.number AS trial,
    (((edit.place - 1))::integer + 1) AS edit,
        CASE
            WHEN ((edit.value #>> '{site}'::text[]) = ANY (ARRAY['attn'::text, 'enc_self'::text, 'dec_self'::text, 'cross'::text])) THEN 'attention'::text
            ELSE 'ffn'::text
        END AS side,
    (edit.value #>> '{site}'::text[]) AS site,
    COALESCE((edit.value #>> '{layers,name}'::text[]), 'all'::text) AS layers,
    (edit.value #>> '{write}'::text[]) AS write,
    (edit.value #>> '{read}'::text[]) AS read,
        CASE
            WHEN (((edit.value #>> '{read}'::text[]) IS NULL) OR ((edit.value #>> '{read}'::text[]) = (edit.value #>> '{write}'::text[]))) THEN 'sequential'::text
            ELSE 'parallel'::text
        END AS insertion,
    (edit.value #>> '{form,name}'::text[]) AS form,
    (edit.value #>> '{form,activation}'::text[]) AS activation,
    (edit.value #>> '{gate,name}'::text[]) AS gate,
    COALESCE((edit.value #>> '{form,heads}'::text[]), 'single'::text) AS heads,
    ((edit.value #>> '{form,width}'::text[]))::bigint AS bottleneck,
        CASE
            WHEN ((edit.value #>> '{gate,name}'::text[]) = 'scale'::text) THEN ((edit.value #>> '{gate,value}'::text[]))::double precision
            ELSE NULL::double precision
        END AS scale,
    trials.id AS trial_id
   FROM ((public.trials
     JOIN public.studies ON ((studies.id = trials.study_id)))
     CROSS JOIN LATERAL jsonb_array_elements(((trials.configuration)::jsonb #> '{edits}'::text[])) WITH ORDINALITY edit(value, place));
CREATE TABLE public.confirmations (
    study_id integer NOT NULL,
    top integer NOT NULL,
    against json NOT NULL,
    seeds json NOT NULL,
    contenders json NOT NULL,
    left_out json NOT NULL,
    CONSTRAINT ck_confirmations_top CHECK ((top >= 1))
);
CREATE VIEW public.confirmation_results AS
 SELECT parents.name AS study,
    studies.name AS confirmation,
    (((contender.place - 1))::integer + 1) AS place,
    (contender.value #>> '{label}'::text[]) AS label,
        CASE
            WHEN ((contender.value #>> '{change}'::text[]) IS NOT NULL) THEN 'path'::text
            WHEN ((contender.value #>> '{is_top}'::text[]))::boolean THEN 'top'::text
            ELSE 'baseline'::text
        END AS kind,
    ((contender.value #>> '{trial}'::text[]))::integer AS trial,
    (contender.value #>> '{change}'::text[]) AS change,
    ((contender.value #>> '{validation_score}'::text[]))::double precision AS validation_score,
    json_array_length(confirmations.seeds) AS planned,
    COALESCE(spread.seeds, (0)::bigint) AS seeds,
    spread.mean,
    spread.deviation,
    spread.lowest,
    spread.highest,
    (((contender.value #>> '{validation_score}'::text[]))::double precision - spread.mean) AS optimism
   FROM ((((public.confirmations
     JOIN public.studies ON ((studies.id = confirmations.study_id)))
     JOIN public.studies parents ON ((parents.id = studies.parent_id)))
     CROSS JOIN LATERAL jsonb_array_elements(((confirmations.contenders)::jsonb #> '{}'::text[])) WITH ORDINALITY contender(value, place))
     LEFT JOIN ( SELECT scored.study_id,
            scored.place,
            count(*) AS seeds,
            avg(scored.score) AS mean,
            min(scored.score) AS lowest,
            max(scored.score) AS highest,
            sqrt((sum(((scored.score - scored.mean) * (scored.score - scored.mean))) / (NULLIF((count(*) - 1), 0))::double precision)) AS deviation
           FROM ( SELECT trials.study_id,
                    (trials.number / json_array_length(confirmations_1.seeds)) AS place,
                    trials.score,
                    avg(trials.score) OVER (PARTITION BY trials.study_id, (trials.number / json_array_length(confirmations_1.seeds))) AS mean
                   FROM (public.trials
                     JOIN public.confirmations confirmations_1 ON ((confirmations_1.study_id = trials.study_id)))
                  WHERE (trials.state = 'complete'::text)) scored
          GROUP BY scored.study_id, scored.place) spread ON (((spread.study_id = studies.id) AND (spread.place = ((contender.place - 1))::integer))));
CREATE VIEW public.curves AS
 SELECT studies.name AS study,
    trials.number AS trial,
    readings.step,
    readings.rung,
    readings.attempt,
    readings.score,
    (((readings.metrics)::jsonb #>> '{validation_loss}'::text[]))::double precision AS validation_loss,
    readings.train_loss,
    sum(readings.seconds) OVER (PARTITION BY readings.trial_id ORDER BY readings.step) AS seconds,
    readings.heard_at,
    trials.state,
    trials.id AS trial_id
   FROM ((public.trials
     JOIN public.studies ON ((studies.id = trials.study_id)))
     JOIN public.readings ON ((readings.trial_id = trials.id)));
CREATE TABLE public.deltaspace_schema (
    version integer NOT NULL,
    applied_at timestamp with time zone NOT NULL
);
CREATE TABLE public.events (
    id integer NOT NULL,
    study_id integer NOT NULL,
    at timestamp with time zone NOT NULL,
    kind text NOT NULL,
    trial integer,
    text text NOT NULL
);
CREATE SEQUENCE public.events_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.events_id_seq OWNED BY public.events.id;
CREATE TABLE public.examples (
    trial_id integer NOT NULL,
    step integer NOT NULL,
    losses bytea NOT NULL,
    correct bytea,
    CONSTRAINT ck_examples_losses CHECK ((length(losses) > 0))
);
CREATE VIEW public.fronts AS
 SELECT sized.study,
    sized.objective,
    sized.trial,
    sized.method,
    sized.description,
    sized.score,
    sized.size,
    sized.budget_fraction,
    sized.backbone_fraction,
    sized.trial_id
   FROM ( SELECT studies.name AS study,
            'parameters'::text AS objective,
            trials.number AS trial,
            COALESCE(trials.method, 'discovered'::text) AS method,
            trials.description,
            trials.score,
            trials.stored_parameters AS size,
            ((trials.stored_parameters)::double precision / (studies.budget_parameters)::double precision) AS budget_fraction,
            ((trials.stored_parameters)::double precision / (studies.backbone_parameters)::double precision) AS backbone_fraction,
            trials.id AS trial_id,
            max(trials.score) OVER (PARTITION BY studies.name ORDER BY trials.stored_parameters, trials.score DESC, trials.number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
           FROM (public.trials
             JOIN public.studies ON ((studies.id = trials.study_id)))
          WHERE ((trials.state = 'complete'::text) AND (trials.replicate_of IS NULL) AND (trials.stored_parameters IS NOT NULL))
        UNION ALL
         SELECT studies.name AS study,
            'extra_flops'::text AS objective,
            trials.number AS trial,
            COALESCE(trials.method, 'discovered'::text) AS method,
            trials.description,
            trials.score,
            trials.extra_flops AS size,
            ((trials.stored_parameters)::double precision / (studies.budget_parameters)::double precision) AS budget_fraction,
            ((trials.stored_parameters)::double precision / (studies.backbone_parameters)::double precision) AS backbone_fraction,
            trials.id AS trial_id,
            max(trials.score) OVER (PARTITION BY studies.name ORDER BY trials.extra_flops, trials.score DESC, trials.number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
           FROM (public.trials
             JOIN public.studies ON ((studies.id = trials.study_id)))
          WHERE ((trials.state = 'complete'::text) AND (trials.replicate_of IS NULL) AND (trials.extra_flops IS NOT NULL))) sized
  WHERE ((sized.before IS NULL) OR (sized.score > sized.before));
CREATE VIEW public.leaderboard AS
 SELECT studies.name AS study,
    row_number() OVER (PARTITION BY studies.name ORDER BY
        CASE trials.state
            WHEN 'complete'::text THEN 0
            WHEN 'pruned'::text THEN 1
            ELSE 2
        END,
        CASE trials.state
            WHEN 'complete'::text THEN 0
            ELSE (- trials.steps)
        END, (- COALESCE(trials.score, trials.last_score)), trials.number) AS place,
    trials.number AS trial,
    COALESCE(trials.method, 'discovered'::text) AS method,
    trials.description,
    trials.state,
    COALESCE(trials.score, trials.last_score) AS score,
    trials.steps,
    COALESCE(again.seeds, (0)::bigint) AS seeds,
    again.mean_score,
    trials.stored_parameters,
    ((trials.stored_parameters)::double precision / (studies.budget_parameters)::double precision) AS budget_fraction,
    ((trials.stored_parameters)::double precision / (studies.backbone_parameters)::double precision) AS backbone_fraction,
    trials.attention_share,
    trials.attention_learning_rate,
    trials.ffn_learning_rate,
    trials.reason,
    trials.id AS trial_id
   FROM ((public.trials
     JOIN public.studies ON ((studies.id = trials.study_id)))
     LEFT JOIN ( SELECT trials_1.study_id,
            COALESCE(trials_1.replicate_of, trials_1.number) AS number,
            count(*) AS seeds,
            avg(trials_1.score) AS mean_score
           FROM public.trials trials_1
          WHERE (trials_1.state = 'complete'::text)
          GROUP BY trials_1.study_id, COALESCE(trials_1.replicate_of, trials_1.number)) again ON (((again.study_id = trials.study_id) AND (again.number = trials.number))))
  WHERE ((trials.ended_at IS NOT NULL) AND (trials.replicate_of IS NULL));
CREATE SEQUENCE public.studies_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.studies_id_seq OWNED BY public.studies.id;
CREATE SEQUENCE public.trials_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.trials_id_seq OWNED BY public.trials.id;
ALTER TABLE ONLY public.artefacts ALTER COLUMN id SET DEFAULT nextval('public.artefacts_id_seq'::regclass);
ALTER TABLE ONLY public.events ALTER COLUMN id SET DEFAULT nextval('public.events_id_seq'::regclass);
ALTER TABLE ONLY public.studies ALTER COLUMN id SET DEFAULT nextval('public.studies_id_seq'::regclass);
ALTER TABLE ONLY public.trials ALTER COLUMN id SET DEFAULT nextval('public.trials_id_seq'::regclass);
INSERT INTO public.artefacts VALUES
	(4, 1, 'delta', 8, 'trial-0/attempt-1/step-000008.safetensors', '146c0aeba4c6ecb4b0b752a025707d187da0e7da1ba9058ed62494eaf47c7524', 77064),
	(8, 9, 'delta', 8, 'trial-8/attempt-1/step-000008.safetensors', '6dbba79f4b64c3999c8f224925b7cce6bd1c23289a2321c5c1e1722ef1d84b3f', 76928);
INSERT INTO public.attempts VALUES
	(2, 1, 'inline/0016acf4', '2026-11-22 12:03:21.527735+00', '2026-11-22 12:02:21.527735+00', '2026-11-22 12:02:23.196178+00', 'pruned'),
	(3, 1, 'inline/0016acf4', '2026-11-22 12:03:23.259964+00', '2026-11-22 12:02:23.259964+00', '2026-11-22 12:02:24.166171+00', 'pruned'),
	(1, 1, 'inline/0016acf4', '2026-11-22 12:03:21.527735+00', '2026-11-22 12:02:21.527735+00', '2026-11-22 12:02:24.886654+00', 'complete'),
	(4, 1, 'inline/0016acf4', '2026-11-22 12:03:24.187286+00', '2026-11-22 12:02:24.187286+00', '2026-11-22 12:02:24.896582+00', 'pruned'),
	(6, 1, 'inline/0016acf4', '2026-11-22 12:03:24.921175+00', '2026-11-22 12:02:24.921175+00', '2026-11-22 12:02:25.176727+00', 'pruned'),
	(5, 1, 'inline/0016acf4', '2026-11-22 12:03:24.921175+00', '2026-11-22 12:02:24.921175+00', '2026-11-22 12:02:25.864528+00', 'pruned'),
	(7, 1, 'inline/0016acf4', '2026-11-22 12:03:25.186492+00', '2026-11-22 12:02:25.186492+00', '2026-11-22 12:02:25.887992+00', 'pruned'),
	(8, 1, 'inline/0016acf4', '2026-11-22 12:03:25.960377+00', '2026-11-22 12:02:25.960377+00', '2026-11-22 12:02:26.708811+00', 'pruned'),
	(10, 1, 'inline/0016acf4', '2026-11-22 12:03:26.744383+00', '2026-11-22 12:02:26.744383+00', '2026-11-22 12:02:27.400749+00', 'pruned'),
	(11, 1, 'inline/0016acf4', '2026-11-22 12:03:27.496429+00', '2026-11-22 12:02:27.496429+00', '2026-11-22 12:02:27.77077+00', 'pruned'),
	(9, 1, 'inline/0016acf4', '2026-11-22 12:03:25.960377+00', '2026-11-22 12:02:25.960377+00', '2026-11-22 12:02:28.229941+00', 'complete'),
	(13, 1, 'inline/0016acf4', '2026-11-22 12:03:28.316305+00', '2026-11-22 12:02:28.316305+00', NULL, NULL),
	(12, 1, 'inline/0016acf4', '2026-11-22 12:03:27.84021+00', '2026-11-22 12:02:27.84021+00', '2026-11-22 12:02:28.672582+00', 'pruned');
INSERT INTO public.deltaspace_schema VALUES
	(1, '2026-11-22 12:02:17.435686+00'),
	(2, '2026-11-22 12:02:17.435686+00'),
	(3, '2026-11-22 12:02:17.435686+00'),
	(4, '2026-11-22 12:02:17.435686+00');
INSERT INTO public.events VALUES
	(1, 1, '2026-11-22 12:02:21.476857+00', 'takeover', NULL, 'keeper 1 is inline 22579');
INSERT INTO public.examples VALUES
	(1, 2, '\x5e3fef3d1140a23ee33ed83eac3ec13f433fc13fc83e7b3e2e40f23edd3db73e1e3e2440c13e643e3b3e9a3e06404b3e', '\x40029d'),
	(2, 2, '\x943e1c3e88403b3ef63e0c3f1a3ffc3d1b4054403d3fd93e81400b3fe53d043f603e7040a23e1f3e2b3e363f69400b3e', '\x400211'),
	(1, 4, '\x943ef73d3c408c3fb23e9e3e8c3feb3e6f3f5b3f903e413f4140cc3e0c3e613e643e3540873e983ea73e773e38408a3e', '\x482235'),
	(3, 2, '\xca3dda3e52409b3e103fc93eef3ea13d5d402e407a3fe13e57402f3fc33e493fd03e63408a3fef3e0e3f963ea640153f', '\x810000'),
	(4, 2, '\x273e683e3a40bc3f5a3e263e613f4a3e593f4540c83e1a3f9f3f9b3e803efa3d983e5b3ffd3e073fcd3e243e3140bc3e', '\x850104'),
	(1, 8, '\x5f3d553e25401440cb3eb03e0340e03d273fe03f7d3eac3f0c40f83e8a3e5d3efe3e0640833ef83e3b3f703e3340053f', '\x810004'),
	(4, 4, '\xd53c9a3f1a416f404b3d463d3640df3c5b406c40c33d064077409d3ddd3ffe3c18404140063e31403c40633d40410f40', '\x850000'),
	(5, 2, '\x333fe13dbe40a63e333f8e3f553ea23eeb40a83f943f283eef40d93fe63d243f163ef2405c3fbe3dd43d583ff140943d', '\x400299'),
	(6, 2, '\x353d5f3ec2402140853f7a3f983f853d87401040ac3f8d3f55400d40af3e913fa43e5a406e3f633fec3eaa3ecd40ac3e', '\x810000'),
	(5, 4, '\x1e3e5a3ebd40723fa03e303f0c3f583dd84017401f3fca3ecd40793f893e883ebb3ebc40fd3e403e983e093ffe402d3e', '\x810000'),
	(7, 2, '\xdc3d7d3e9b404d3ec73e213f233e8d3d40403440583fac3e6d40783fc13ed23e443f7a40793f633f2c3fda3e6840c23e', '\x810000'),
	(8, 2, '\x5d3de83e73401d3f093f253fff3e483d4e4051404b3f323f2c40963f053f193f4f3f0f40ce3fa23f9a3f0b3fd040333f', '\x810000'),
	(9, 2, '\xa43e4e3e714054402d3e623ec23fe13e8b401b400d3eb83f6c40933ecf3dfd3d203e4e402a3ed03d123e173ec640273e', '\x00223d'),
	(9, 4, '\x4c3ec83e5d4188405b3dc33db63f7e3e62419f3f463dc23f3e41e73d683e263dd23e2441713d5b3eea3e883ddd41cf3e', '\x0c2524'),
	(10, 2, '\x923e403e6640ad3e493f963e0d3f033e6b40bf3f303f1d3f63408e3f5b3ed83f3e3e5d400b3fbf3ec33ec73ea740633e', '\x410200'),
	(11, 2, '\xeb3e023f2b405a3edd3e103ff23dff3ec93f5640ed3e283ec23fd63f233f493f313fd03fa73f483ff23eed3e8b3f9f3e', '\x121000'),
	(9, 8, '\x1d3d6b3fcf41d0403a3d9d3d0c407b3dd041eb3f283d05409b41d13d123ff93c913f6f415f3dff3ece3f733d6f42863f', '\x8c2104'),
	(12, 2, '\xc53e0f3e1a40893ed13e653eaa3fb43e04404440b23ec73f48405a3e9d3eb03e293eea3fb93e993e553e113e0c40823e', '\x40008d'),
	(12, 4, '\x823e4f3e6f40483f063ed33d5b40703e3d400140083e66407b40b53d0f3ff13dae3e0a400a3e0e3fd83ea23d7940f53e', '\x0c0504');
INSERT INTO public.readings VALUES
	(1, 2, 1, 0.2916666666666667, '{"accuracy":0.2916666666666667,"f1":0.11574074074074074,"matthews":0.11963468332406943,"validation_loss":1.7407455146312714,"same_prediction":0.875}', 1.8194528222084045, 0.41301488949829945, 0, '2026-11-22 12:02:23.120274+00'),
	(2, 2, 1, 0.16666666666666666, '{"accuracy":0.16666666666666666,"f1":0.04938271604938271,"matthews":-0.15085093654628073,"validation_loss":1.7836011052131653,"same_prediction":0.875}', 1.8210240602493286, 0.41301559600105975, 0, '2026-11-22 12:02:23.192922+00'),
	(1, 4, 1, 0.3333333333333333, '{"accuracy":0.3333333333333333,"f1":0.16317016317016317,"matthews":0.14284873687510252,"validation_loss":1.7572779059410095,"same_prediction":0.6666666666666666}', 1.9075108170509338, 0.4026964670010784, 1, '2026-11-22 12:02:24.159986+00'),
	(3, 2, 1, 0.08333333333333333, '{"accuracy":0.08333333333333333,"f1":0.025641025641025644,"matthews":0.0,"validation_loss":1.8304717242717743,"same_prediction":1.0}', 1.893222451210022, 0.40269759900184, 0, '2026-11-22 12:02:24.165169+00'),
	(4, 2, 1, 0.20833333333333334, '{"accuracy":0.20833333333333334,"f1":0.10651629072681705,"matthews":0.11280907239625257,"validation_loss":1.7439527759949367,"same_prediction":0.7083333333333334}', 1.867465853691101, 0.1765447000034328, 0, '2026-11-22 12:02:24.496768+00'),
	(1, 8, 1, 0.125, '{"accuracy":0.125,"f1":0.06734006734006734,"matthews":0.021773457205625586,"validation_loss":1.7738169978062313,"same_prediction":0.8333333333333334}', 1.8057120740413666, 0.27579803250409896, NULL, '2026-11-22 12:02:24.884731+00'),
	(4, 4, 1, 0.125, '{"accuracy":0.125,"f1":0.06231884057971015,"matthews":0.037712734136570183,"validation_loss":1.8511175761620204,"same_prediction":0.875}', 1.6650646924972534, 0.1826906315072847, 1, '2026-11-22 12:02:24.892501+00'),
	(5, 2, 1, 0.25, '{"accuracy":0.25,"f1":0.06896551724137931,"matthews":0.020805258754531666,"validation_loss":1.839830497900645,"same_prediction":0.9583333333333334}', 1.8122455477714539, 0.106449695500487, 0, '2026-11-22 12:02:25.172927+00'),
	(6, 2, 1, 0.08333333333333333, '{"accuracy":0.08333333333333333,"f1":0.025641025641025644,"matthews":0.0,"validation_loss":1.884387085835139,"same_prediction":1.0}', 1.7537249326705933, 0.10645027599821333, 0, '2026-11-22 12:02:25.175863+00'),
	(5, 4, 1, 0.08333333333333333, '{"accuracy":0.08333333333333333,"f1":0.02666666666666667,"matthews":-0.03467543125755278,"validation_loss":1.8410631318887074,"same_prediction":0.9583333333333334}', 1.8806682229042053, 0.29191477600033977, 1, '2026-11-22 12:02:25.855632+00'),
	(7, 2, 1, 0.08333333333333333, '{"accuracy":0.08333333333333333,"f1":0.02666666666666667,"matthews":-0.02774034500604222,"validation_loss":1.8223105768362682,"same_prediction":0.9583333333333334}', 1.8932863473892212, 0.2919154470000649, 0, '2026-11-22 12:02:25.886994+00'),
	(8, 2, 1, 0.08333333333333333, '{"accuracy":0.08333333333333333,"f1":0.025641025641025644,"matthews":0.0,"validation_loss":1.8630606283744175,"same_prediction":1.0}', 1.9202847480773926, 0.3247649540026032, 0, '2026-11-22 12:02:26.707644+00'),
	(9, 2, 1, 0.2916666666666667, '{"accuracy":0.2916666666666667,"f1":0.1259920634920635,"matthews":0.04293783666079539,"validation_loss":1.7765066574017208,"same_prediction":0.625}', 1.815291941165924, 0.3247655700033647, 0, '2026-11-22 12:02:26.731062+00'),
	(9, 4, 1, 0.2916666666666667, '{"accuracy":0.2916666666666667,"f1":0.07526881720430108,"matthews":0.0,"validation_loss":1.8481553047895432,"same_prediction":1.0}', 1.764345645904541, 0.3046789545005595, 1, '2026-11-22 12:02:27.396531+00'),
	(10, 2, 1, 0.125, '{"accuracy":0.125,"f1":0.07647907647907648,"matthews":0.01364941295990332,"validation_loss":1.8190571417411168,"same_prediction":0.7916666666666666}', 1.8650273084640503, 0.3046784085017862, 0, '2026-11-22 12:02:27.400143+00'),
	(11, 2, 1, 0.125, '{"accuracy":0.125,"f1":0.037037037037037035,"matthews":0.0,"validation_loss":1.8021358400583267,"same_prediction":1.0}', 1.921546220779419, 0.1434143079968635, 0, '2026-11-22 12:02:27.769945+00'),
	(9, 8, 1, 0.25, '{"accuracy":0.25,"f1":0.11481481481481481,"matthews":0.11403328168137125,"validation_loss":1.921318878730138,"same_prediction":0.5416666666666666}', 1.7451436221599579, 0.27675024650307023, NULL, '2026-11-22 12:02:28.228522+00'),
	(12, 2, 1, 0.20833333333333334, '{"accuracy":0.20833333333333334,"f1":0.11746031746031745,"matthews":0.0,"validation_loss":1.7581297357877095,"same_prediction":0.3333333333333333}', 1.8454815745353699, 0.17601897550412104, 0, '2026-11-22 12:02:28.236144+00'),
	(12, 4, 1, 0.20833333333333334, '{"accuracy":0.20833333333333334,"f1":0.07246376811594203,"matthews":-0.023518021709589932,"validation_loss":1.783027817805608,"same_prediction":0.6666666666666666}', 1.8334675431251526, 0.15530278599908343, 1, '2026-11-22 12:02:28.671438+00');
INSERT INTO public.studies VALUES
	(1, 'middle', '{"name":"middle","backbone":"embedded","task":{"kind":"classification","name":"docstrings","folder":null,"hub":null,"configuration":null,"revision":null,"text":null,"label":null,"labels":null,"source":null,"target":null,"references":null,"context":null,"question":null,"answers":null,"join":null,"group":null,"groups":{},"instruction":null,"languages":null,"splits":{},"metric":"accuracy","metrics":[],"early_metric":"loss","max_tokens":16,"max_target_tokens":64,"label_smoothing":0.0,"decoding":{"beams":1,"max_new_tokens":null,"min_new_tokens":0,"length_penalty":1.0,"no_repeat_ngram":0},"train_examples":96,"validation_examples":24,"preset":null},"budget":4500,"trials":20,"seed":5,"training":{"steps":8,"batch_size":8,"head_learning_rate":0.005,"warmup_fraction":0.06,"weight_decay":0.0,"betas":[0.9,0.999],"clip_norm":1.0,"precision":"fp32"},"pruning":{"first_rung_steps":2,"reduction":2,"rule":"ranks","protect_published":"best","stop_collapsed":true},"search":{"published":["lora_qv"],"published_scale":2.0,"attention_forms":["softmax_memory","bottleneck","lowrank","diag","const"],"ffn_forms":["bottleneck","lowrank","softmax_memory","diag","const"],"sites":"tied","layers":["all"],"edits_per_side":[1,2],"activations":["relu","gelu","silu","tanh"],"gates":["add","scale","scale_learned","lse_convex","inducer"],"scales":[2.0,4.0],"scale_per":["sublayer"],"key_widths":[null,4],"norms":["none"],"biases":["usual"],"inits":["lora"],"reparameterizations":[null],"products":[4],"factors":[1],"sharing":["shared"],"near_duplicates":false,"size":null,"max_extra_flops":null,"mergeable":false,"attention_share":[0.05,0.95],"split":[0.05,0.95],"learning_rates":{"softmax_memory":[0.003,0.04],"bottleneck":[0.001,0.02],"lowrank":[0.001,0.015],"phm":[0.001,0.02],"diag":[0.003,0.05],"const":[0.001,0.01],"prompt":[0.01,0.3],"encoded_prompt":[0.0003,0.01],"full":[1e-05,0.0005],"sparse":[1e-05,0.0005],"intrinsic":[0.001,0.1]},"learning_rates_of":"output","objectives":["score"],"sampler":"factored","draws":"structures","first_rates":"expected","hears_losses":true,"learn_from":"none","lessons":null,"replicates":2},"fleet":{"backend":"inline","workers":"auto","pack":2,"time_budget":null,"stuck_after":3600.0,"artefacts":"@ARTEFACTS@"}}', 'embedded', 5454336, 4500, 'accuracy', 5, 1, '2026-11-22 12:02:17.445137+00', 'search', NULL, '@ARTEFACTS@/middle', 'desk:22579:760a8e8c1205:5047768:98b1b8b0', '2026-11-22 12:03:21.509849+00');
INSERT INTO public.trials VALUES
	(1, 1, 0, 'complete', 0.125, NULL, 8, 0.125, 1, 'published', 'lora_qv', 'LoRA r=1, ×2, query+value', 'lowrank', 'q+v', 'parallel', 'scale', 'single', 1, NULL, 2, 0.003328387525737563, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1, 4096, 4096, 1542, 2034869288, '256065e9f5677273239570bd2c80e471', '{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"q","read":"x_attn","form":{"name":"lowrank","width":1,"widened":0,"heads":"single","bias":false},"gate":{"name":"scale","value":2.0}},{"site":"attn","layers":{"name":"all"},"write":"v","read":"ctx","form":{"name":"lowrank","width":1,"widened":0,"heads":"single","bias":false},"gate":{"name":"scale","value":2.0}}]}', '{"learning_rate.lowrank":0.006656775051475126}', '2026-11-22 12:02:21.527735+00', '2026-11-22 12:02:24.886654+00', NULL, 0),
	(2, 1, 1, 'pruned', NULL, 'rung 0 (2 steps): 0.1667 below the cut 0.2917', 2, 0.16666666666666666, 1, 'proposed', NULL, 'tanh sequential adapter r=2, ×2, key', 'bottleneck', 'k', 'sequential', 'scale', 'single', 2, 'tanh', 2, 0.0016009353979685335, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1, 4096, 4096, 1542, 396060440, '62951214be30b4012d825746bd063c1c', '{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"k","read":"k","form":{"name":"bottleneck","width":2,"widened":0,"activation":"tanh","heads":"single","bias":false,"norm":"none","init":"lora","reparameterization":null},"gate":{"name":"scale","value":2.0}}]}', '{"placement":"attention","attention.edits":"1","attention.form":"bottleneck","attention.bottleneck.write":"k","attention.bottleneck.k.read":"k","attention.bottleneck.gate":"scale","attention.activation":"tanh","attention.scale":"2.0","learning_rate.bottleneck":0.003201870795937067}', '2026-11-22 12:02:21.527735+00', '2026-11-22 12:02:23.196178+00', NULL, 8192),
	(3, 1, 2, 'pruned', NULL, 'rung 0 (2 steps): 0.08333 below the cut 0.2917', 2, 0.08333333333333333, 1, 'proposed', NULL, 'sequential softmax memory l=2, ×2, residual sum', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'softmax_memory', 'sum', 'sequential', 'scale', 'single', 2, NULL, 2, 0.011043097040804455, 0, 4096, 4096, 1542, 1656311285, '308db32ff6931f074a134a225befa02b', '{"schema_version":2,"edits":[{"site":"ffn","layers":{"name":"all"},"write":"sum","read":"sum","form":{"name":"softmax_memory","width":2,"widened":0,"heads":"single","reparameterization":null,"robust":false},"gate":{"name":"scale","value":2.0}}]}', '{"placement":"ffn","ffn.edits":"1","ffn.form":"softmax_memory","ffn.softmax_memory.write":"sum","ffn.softmax_memory.gate":"scale","ffn.scale":"2.0","learning_rate.softmax_memory":0.02208619408160891}', '2026-11-22 12:02:23.259964+00', '2026-11-22 12:02:24.166171+00', NULL, 8192),
	(6, 1, 5, 'pruned', NULL, 'rung 0 (2 steps): collapsed: all its predictions are the same, its loss is 1.884, and guessing has 1.738', 2, 0.08333333333333333, 1, 'proposed', NULL, 'parallel low-rank map r=2, ×2, FFN output', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'lowrank', 'f', 'parallel', 'scale', 'single', 2, NULL, 2, 0.0014532278809246556, 0, 4096, 4096, 1542, 851471095, '5a8ca1f91ce40b2b75224978b11ed677', '{"schema_version":2,"edits":[{"site":"ffn","layers":{"name":"all"},"write":"f","read":"x_ffn","form":{"name":"lowrank","width":2,"widened":0,"heads":"single","bias":false},"gate":{"name":"scale","value":2.0}}]}', '{"placement":"ffn","ffn.edits":"1","ffn.form":"lowrank","ffn.lowrank.write":"f","ffn.lowrank.f.read":"x_ffn","ffn.lowrank.gate":"scale","ffn.scale":"2.0","learning_rate.lowrank":0.002906455761849311}', '2026-11-22 12:02:24.921175+00', '2026-11-22 12:02:25.176727+00', NULL, 8192),
	(4, 1, 3, 'pruned', NULL, 'rung 1 (4 steps): 0.125 below the cut 0.3333', 4, 0.125, 1, 'proposed', NULL, 'parallel softmax memory l=1, learned scale, key + sequential low-rank map r=1, ×4, residual sum', 'softmax_memory', 'k', 'parallel', 'scale_learned', 'single', 1, NULL, NULL, 0.008393613574191919, 'lowrank', 'sum', 'sequential', 'scale', 'single', 1, NULL, 4, 0.0002552960598912299, 0.5004878048780488, 4100, 4100, 1542, 1034300484, '8cd01fcfee9118b4dee96604ca6e0650', '{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"k","read":"ctx","form":{"name":"softmax_memory","width":1,"widened":0,"heads":"single","reparameterization":null,"robust":false},"gate":{"name":"scale_learned","per":"sublayer"}},{"site":"ffn","layers":{"name":"all"},"write":"sum","read":"sum","form":{"name":"lowrank","width":1,"widened":0,"heads":"single","bias":false},"gate":{"name":"scale","value":4.0}}]}', '{"placement":"both","attention.edits":"1","attention.form":"softmax_memory","attention.softmax_memory.write":"k","attention.softmax_memory.k.read":"ctx","attention.softmax_memory.gate":"scale_learned","ffn.edits":"1","ffn.form":"lowrank","ffn.lowrank.write":"sum","ffn.lowrank.gate":"scale","ffn.scale":"4.0","attention_share":0.5507488078266314,"learning_rate.softmax_memory":0.008393613574191919,"learning_rate.lowrank":0.0010211842395649196}', '2026-11-22 12:02:24.187286+00', '2026-11-22 12:02:24.896582+00', NULL, 8192),
	(5, 1, 4, 'pruned', NULL, 'rung 1 (4 steps): 0.08333 below the cut 0.3333', 4, 0.08333333333333333, 1, 'proposed', NULL, 'SiLU multi-head parallel adapter r=1–2, learned scale, heads + scaling, residual sum', 'bottleneck', 'head', 'parallel', 'scale_learned', 'query_heads', 1, 'silu', NULL, 0.0014019500005543752, 'diag', 'sum', 'sequential', 'mul', 'single', NULL, NULL, NULL, 0.0064597791762622155, 0.7502439024390244, 4100, 4100, 1542, 902763100, '3981e4e291b6b009e44923e68241bb04', '{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"head","read":"q","form":{"name":"bottleneck","width":1,"widened":2,"activation":"silu","heads":"query_heads","bias":false,"norm":"none","init":"lora","reparameterization":null},"gate":{"name":"scale_learned","per":"sublayer"}},{"site":"ffn","layers":{"name":"all"},"write":"sum","read":"sum","form":{"name":"diag"},"gate":{"name":"mul"}}]}', '{"placement":"both","attention.edits":"1","attention.form":"bottleneck","attention.bottleneck.write":"head","attention.bottleneck.head.read":"q","attention.bottleneck.inducer_gate":"scale_learned","attention.activation":"silu","ffn.edits":"1","ffn.form":"diag","ffn.diag.write":"sum","learning_rate.bottleneck":0.0014019500005543752,"learning_rate.diag":0.0064597791762622155}', '2026-11-22 12:02:24.921175+00', '2026-11-22 12:02:25.864528+00', NULL, 8192),
	(8, 1, 7, 'pruned', NULL, 'rung 0 (2 steps): collapsed: all its predictions are the same, its loss is 1.863, and guessing has 1.738', 2, 0.08333333333333333, 1, 'proposed', NULL, 'sequential softmax memory l=2, learned scale, FFN output', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'softmax_memory', 'f', 'sequential', 'scale_learned', 'single', 2, NULL, NULL, 0.026015152715788536, 0, 4100, 4100, 1542, 1412250737, '458121db9491010c033b478e3a0ef845', '{"schema_version":2,"edits":[{"site":"ffn","layers":{"name":"all"},"write":"f","read":"f","form":{"name":"softmax_memory","width":2,"widened":0,"heads":"single","reparameterization":null,"robust":false},"gate":{"name":"scale_learned","per":"sublayer"}}]}', '{"placement":"ffn","ffn.edits":"1","ffn.form":"softmax_memory","ffn.softmax_memory.write":"f","ffn.softmax_memory.f.read":"f","ffn.softmax_memory.gate":"scale_learned","learning_rate.softmax_memory":0.026015152715788536}', '2026-11-22 12:02:25.960377+00', '2026-11-22 12:02:26.708811+00', NULL, 8192),
	(7, 1, 6, 'pruned', NULL, 'rung 0 (2 steps): 0.08333 below the cut 0.2083', 2, 0.08333333333333333, 1, 'proposed', NULL, 'multi-head parallel low-rank map r=1–2, heads + parallel diagonal, learned scale, FFN output', 'lowrank', 'head', 'parallel', 'add', 'query_heads', 1, NULL, NULL, 0.0011271105484752916, 'diag', 'f', 'parallel', 'scale_learned', 'single', NULL, NULL, NULL, 0.04391119212397688, 0.7492682926829268, 4100, 4100, 1542, 135052459, '309fbb8254528b437d7eec1e73768b16', '{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"head","read":"q","form":{"name":"lowrank","width":1,"widened":2,"heads":"query_heads","bias":false},"gate":{"name":"add"}},{"site":"ffn","layers":{"name":"all"},"write":"f","read":"x_ffn","form":{"name":"diag"},"gate":{"name":"scale_learned","per":"sublayer"}}]}', '{"placement":"both","attention.edits":"1","attention.form":"lowrank","attention.lowrank.write":"head","attention.lowrank.head.read":"q","attention.lowrank.inducer_gate":"add","ffn.edits":"1","ffn.form":"diag","ffn.diag.write":"f","ffn.diag.f.read":"x_ffn","ffn.diag.gate":"scale_learned","learning_rate.lowrank":0.0011271105484752916,"learning_rate.diag":0.04391119212397688}', '2026-11-22 12:02:25.186492+00', '2026-11-22 12:02:25.887992+00', NULL, 8192),
	(11, 1, 10, 'pruned', NULL, 'rung 0 (2 steps): collapsed: all its predictions are the same, its loss is 1.802, and guessing has 1.738', 2, 0.125, 1, 'proposed', NULL, 'tanh parallel adapter r=1–2, ×2, key + parallel diagonal, ×2, FFN output', 'bottleneck', 'k', 'parallel', 'scale', 'single', 1, 'tanh', 2, 0.002338904093184534, 'diag', 'f', 'parallel', 'scale', 'single', NULL, NULL, 2, 0.013970514705946749, 0.75, 4096, 4096, 1542, 2035657662, '973dd8aa5ea1751d7f38259c421b9b75', '{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"k","read":"ctx","form":{"name":"bottleneck","width":1,"widened":2,"activation":"tanh","heads":"single","bias":false,"norm":"none","init":"lora","reparameterization":null},"gate":{"name":"scale","value":2.0}},{"site":"ffn","layers":{"name":"all"},"write":"f","read":"x_ffn","form":{"name":"diag"},"gate":{"name":"scale","value":2.0}}]}', '{"placement":"both","attention.edits":"1","attention.form":"bottleneck","attention.bottleneck.write":"k","attention.bottleneck.k.read":"ctx","attention.bottleneck.gate":"scale","attention.activation":"tanh","attention.scale":"2.0","ffn.edits":"1","ffn.form":"diag","ffn.diag.write":"f","ffn.diag.f.read":"x_ffn","ffn.diag.gate":"scale","ffn.scale":"2.0","learning_rate.bottleneck":0.004677808186369068,"learning_rate.diag":0.027941029411893498}', '2026-11-22 12:02:27.496429+00', '2026-11-22 12:02:27.77077+00', NULL, 8192),
	(10, 1, 9, 'pruned', NULL, 'rung 0 (2 steps): 0.125 below the cut 0.1667', 2, 0.125, 1, 'proposed', NULL, 'bias, value + sequential softmax memory l=1–2, FFN output', 'const', 'v', 'sequential', 'add', 'single', NULL, NULL, NULL, 0.00757039534357777, 'softmax_memory', 'f', 'sequential', 'add', 'single', 1, NULL, NULL, 0.008717692090684633, 0.25, 4096, 4096, 1542, 1764436165, '67b6d2f46cde73e07001777cfd7c0848', '{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"v","read":null,"form":{"name":"const"},"gate":{"name":"add"}},{"site":"ffn","layers":{"name":"all"},"write":"f","read":"f","form":{"name":"softmax_memory","width":1,"widened":2,"heads":"single","reparameterization":null,"robust":false},"gate":{"name":"add"}}]}', '{"placement":"both","attention.edits":"1","attention.form":"const","attention.const.write":"v","ffn.edits":"1","ffn.form":"softmax_memory","ffn.softmax_memory.write":"f","ffn.softmax_memory.f.read":"f","ffn.softmax_memory.gate":"add","learning_rate.const":0.00757039534357777,"learning_rate.softmax_memory":0.008717692090684633}', '2026-11-22 12:02:26.744383+00', '2026-11-22 12:02:27.400749+00', NULL, 6144),
	(9, 1, 8, 'complete', 0.25, NULL, 8, 0.25, 1, 'proposed', NULL, 'parallel diagonal, attention output + parallel softmax memory l=1–2, learned scale, FFN output', 'diag', 'o', 'parallel', 'add', 'single', NULL, NULL, NULL, 0.012076004021913157, 'softmax_memory', 'f', 'parallel', 'scale_learned', 'single', 1, NULL, NULL, 0.004457091268866817, 0.2497560975609756, 4100, 4100, 1542, 855797222, 'c3864caa889ceaf397656584c4547eea', '{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"o","read":"x_attn","form":{"name":"diag"},"gate":{"name":"add"}},{"site":"ffn","layers":{"name":"all"},"write":"f","read":"x_ffn","form":{"name":"softmax_memory","width":1,"widened":2,"heads":"single","reparameterization":null,"robust":false},"gate":{"name":"scale_learned","per":"sublayer"}}]}', '{"placement":"both","attention.edits":"1","attention.form":"diag","attention.diag.write":"o","attention.diag.o.read":"x_attn","attention.diag.gate":"add","ffn.edits":"1","ffn.form":"softmax_memory","ffn.softmax_memory.write":"f","ffn.softmax_memory.f.read":"x_ffn","ffn.softmax_memory.gate":"scale_learned","learning_rate.diag":0.012076004021913157,"learning_rate.softmax_memory":0.004457091268866817}', '2026-11-22 12:02:25.960377+00', '2026-11-22 12:02:28.229941+00', NULL, 8192),
	(13, 1, 12, 'running', NULL, NULL, 0, NULL, 1, 'proposed', NULL, 'parallel softmax memory l=1, ×2, attention output + parallel diagonal, ×4, FFN output + bias, FFN down', 'softmax_memory', 'o', 'parallel', 'scale', 'single', 1, NULL, 2, 0.008318351527996, 'diag+const', 'f', 'parallel+sequential', 'scale+add', 'single', NULL, NULL, 4, 0.0033290219379153068, 0.5, 4096, 4096, 1542, 1364048906, 'fd09eb39e31f030311d437668c8f4eda', '{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"o","read":"x_attn","form":{"name":"softmax_memory","width":1,"widened":0,"heads":"single","reparameterization":null,"robust":false},"gate":{"name":"scale","value":2.0}},{"site":"ffn","layers":{"name":"all"},"write":"f","read":"x_ffn","form":{"name":"diag"},"gate":{"name":"scale","value":4.0}},{"site":"ffn","layers":{"name":"all"},"write":"f","read":null,"form":{"name":"const"},"gate":{"name":"add"}}]}', '{"placement":"both","attention.edits":"1","attention.form":"softmax_memory","attention.softmax_memory.write":"o","attention.softmax_memory.o.read":"x_attn","attention.softmax_memory.gate":"scale","attention.scale":"2.0","ffn.edits":"2","ffn.form":"diag","ffn.diag.write":"f","ffn.diag.f.read":"x_ffn","ffn.diag.gate":"scale","ffn.scale":"4.0","ffn.second.form":"const","learning_rate.softmax_memory":0.016636703055992,"learning_rate.diag":0.016645109689576533}', '2026-11-22 12:02:28.316305+00', NULL, NULL, 6144),
	(12, 1, 11, 'pruned', NULL, 'rung 1 (4 steps): 0.2083 below the cut 0.2917', 4, 0.20833333333333334, 1, 'proposed', NULL, 'multi-head parallel low-rank map r=1, ×2, heads + sequential low-rank map r=1, ×4, residual sum', 'lowrank', 'head', 'parallel', 'scale', 'query_heads', 1, NULL, 2, 0.0033283875257375624, 'lowrank', 'sum', 'sequential', 'scale', 'single', 1, NULL, 4, 0.0016641937628687812, 0.5, 4096, 4096, 1542, 8270963, '75e9a4144798878c0dbf95fcf6922579', '{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"head","read":"q","form":{"name":"lowrank","width":1,"widened":0,"heads":"query_heads","bias":false},"gate":{"name":"scale","value":2.0}},{"site":"ffn","layers":{"name":"all"},"write":"sum","read":"sum","form":{"name":"lowrank","width":1,"widened":0,"heads":"single","bias":false},"gate":{"name":"scale","value":4.0}}]}', '{"placement":"both","attention.edits":"1","attention.form":"lowrank","attention.lowrank.write":"head","attention.lowrank.head.read":"q","attention.lowrank.inducer_gate":"scale","attention.scale":"2.0","ffn.edits":"1","ffn.form":"lowrank","ffn.lowrank.write":"sum","ffn.lowrank.gate":"scale","ffn.scale":"4.0","attention_share":0.5004878048780488,"learning_rate.lowrank":0.006656775051475125}', '2026-11-22 12:02:27.84021+00', '2026-11-22 12:02:28.672582+00', NULL, 8192);
SELECT pg_catalog.setval('public.artefacts_id_seq', 9, true);
SELECT pg_catalog.setval('public.events_id_seq', 1, true);
SELECT pg_catalog.setval('public.studies_id_seq', 1, true);
SELECT pg_catalog.setval('public.trials_id_seq', 13, true);
ALTER TABLE ONLY public.artefacts
    ADD CONSTRAINT pk_artefacts PRIMARY KEY (id);
ALTER TABLE ONLY public.attempts
    ADD CONSTRAINT pk_attempts PRIMARY KEY (trial_id, attempt);
ALTER TABLE ONLY public.confirmations
    ADD CONSTRAINT pk_confirmations PRIMARY KEY (study_id);
ALTER TABLE ONLY public.deltaspace_schema
    ADD CONSTRAINT pk_deltaspace_schema PRIMARY KEY (version);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT pk_events PRIMARY KEY (id);
ALTER TABLE ONLY public.examples
    ADD CONSTRAINT pk_examples PRIMARY KEY (trial_id, step);
ALTER TABLE ONLY public.readings
    ADD CONSTRAINT pk_readings PRIMARY KEY (trial_id, step);
ALTER TABLE ONLY public.studies
    ADD CONSTRAINT pk_studies PRIMARY KEY (id);
ALTER TABLE ONLY public.trials
    ADD CONSTRAINT pk_trials PRIMARY KEY (id);
ALTER TABLE ONLY public.artefacts
    ADD CONSTRAINT uq_artefacts_trial_id_kind_step UNIQUE (trial_id, kind, step);
ALTER TABLE ONLY public.studies
    ADD CONSTRAINT uq_studies_name UNIQUE (name);
ALTER TABLE ONLY public.trials
    ADD CONSTRAINT uq_trials_study_id_fingerprint UNIQUE (study_id, fingerprint);
ALTER TABLE ONLY public.trials
    ADD CONSTRAINT uq_trials_study_id_number UNIQUE (study_id, number);
CREATE INDEX ix_events_study_id ON public.events USING btree (study_id);
CREATE INDEX ix_trials_study_id_state ON public.trials USING btree (study_id, state);
CREATE UNIQUE INDEX uq_attempts_one_final ON public.attempts USING btree (trial_id) WHERE (ending = ANY (ARRAY['complete'::text, 'pruned'::text, 'failed'::text]));
CREATE UNIQUE INDEX uq_attempts_one_open ON public.attempts USING btree (trial_id) WHERE (ended_at IS NULL);
CREATE TRIGGER trials_are_final BEFORE UPDATE ON public.trials FOR EACH ROW WHEN ((old.state = ANY (ARRAY['complete'::text, 'pruned'::text, 'failed'::text]))) EXECUTE FUNCTION public.deltaspace_refuse_change();
ALTER TABLE ONLY public.artefacts
    ADD CONSTRAINT fk_artefacts_trial_id_trials FOREIGN KEY (trial_id) REFERENCES public.trials(id);
ALTER TABLE ONLY public.attempts
    ADD CONSTRAINT fk_attempts_trial_id_trials FOREIGN KEY (trial_id) REFERENCES public.trials(id);
ALTER TABLE ONLY public.confirmations
    ADD CONSTRAINT fk_confirmations_study_id_studies FOREIGN KEY (study_id) REFERENCES public.studies(id);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT fk_events_study_id_studies FOREIGN KEY (study_id) REFERENCES public.studies(id);
ALTER TABLE ONLY public.examples
    ADD CONSTRAINT fk_examples_trial_id_step_readings FOREIGN KEY (trial_id, step) REFERENCES public.readings(trial_id, step);
ALTER TABLE ONLY public.readings
    ADD CONSTRAINT fk_readings_trial_id_attempt_attempts FOREIGN KEY (trial_id, attempt) REFERENCES public.attempts(trial_id, attempt);
ALTER TABLE ONLY public.studies
    ADD CONSTRAINT fk_studies_parent_id_studies FOREIGN KEY (parent_id) REFERENCES public.studies(id);
ALTER TABLE ONLY public.trials
    ADD CONSTRAINT fk_trials_study_id_studies FOREIGN KEY (study_id) REFERENCES public.studies(id);
