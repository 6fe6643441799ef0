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
CREATE TABLE public.confirmations (
    study_id integer NOT NULL,
    top integer NOT NULL,
    against json NOT NULL,
    seeds json NOT NULL,
    contenders json NOT NULL,
    left_out json NOT NULL,
    CONSTRAINT ck_confirmations_top CHECK ((top >= 1))
);
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
CREATE TABLE public.readings (
    trial_id integer NOT NULL,
    step integer NOT NULL,
    attempt integer NOT NULL,
    score double precision NOT NULL,
    metrics json NOT NULL,
    train_loss double precision NOT NULL,
    seconds double precision NOT NULL,
    rung integer,
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
    CONSTRAINT ck_studies_epoch CHECK ((epoch >= 0)),
    CONSTRAINT ck_studies_kind CHECK ((kind = ANY (ARRAY['search'::text, 'confirmation'::text]))),
    CONSTRAINT ck_studies_parameters CHECK (((backbone_parameters > 0) AND (budget_parameters > 0))),
    CONSTRAINT ck_studies_parent_exactly_of_confirmations CHECK (((kind = 'confirmation'::text) = (parent_id IS NOT NULL)))
);
CREATE SEQUENCE public.studies_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.studies_id_seq OWNED BY public.studies.id;
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
    CONSTRAINT ck_trials_attempt CHECK ((attempt >=
CASE
    WHEN (state = 'queued'::text) THEN 0
    ELSE 1
END)),
    CONSTRAINT ck_trials_attention_dimensions CHECK ((((attention_form IS NULL) = (attention_write IS NULL)) AND ((attention_form IS NULL) = (attention_insertion IS NULL)) AND ((attention_form IS NULL) = (attention_gate IS NULL)) AND ((attention_form IS NULL) = (attention_heads IS NULL)) AND ((attention_form IS NULL) = (attention_learning_rate IS NULL)) AND ((attention_form IS NOT NULL) OR ((attention_bottleneck IS NULL) AND (attention_activation IS NULL) AND (attention_scale IS NULL))))),
    CONSTRAINT ck_trials_attention_share CHECK (((attention_share >= (0)::double precision) AND (attention_share <= (1)::double precision))),
    CONSTRAINT ck_trials_ended_exactly_when_terminal CHECK (((state = ANY (ARRAY['complete'::text, 'pruned'::text, 'failed'::text])) = (ended_at IS NOT NULL))),
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
	(4, 1, 'delta', 8, '@ARTEFACTS@/middle/trial-0/attempt-1/step-000008.safetensors', '3609b3dd320b01d38c3aeba149dfd1a88b5860abba2c99261c6579259b95be4f', 77064),
	(8, 9, 'delta', 8, '@ARTEFACTS@/middle/trial-8/attempt-1/step-000008.safetensors', '517917142ce3e6913690b33b34ff5979ae3d03b9efd7d114ca9bf74ca8d022c9', 76928);
INSERT INTO public.attempts VALUES
	(2, 1, 'inline/873a7c4b', '2026-11-22 12:01:33.309006+00', '2026-11-22 12:00:33.309006+00', '2026-11-22 12:00:33.82482+00', 'pruned'),
	(3, 1, 'inline/873a7c4b', '2026-11-22 12:01:33.875842+00', '2026-11-22 12:00:33.875842+00', '2026-11-22 12:00:34.947674+00', 'pruned'),
	(1, 1, 'inline/873a7c4b', '2026-11-22 12:01:33.309006+00', '2026-11-22 12:00:33.309006+00', '2026-11-22 12:00:38.288036+00', 'complete'),
	(4, 1, 'inline/873a7c4b', '2026-11-22 12:01:34.997055+00', '2026-11-22 12:00:34.997055+00', '2026-11-22 12:00:38.363566+00', 'pruned'),
	(6, 1, 'inline/873a7c4b', '2026-11-22 12:01:38.468172+00', '2026-11-22 12:00:38.468172+00', '2026-11-22 12:00:40.351622+00', 'pruned'),
	(5, 1, 'inline/873a7c4b', '2026-11-22 12:01:38.468172+00', '2026-11-22 12:00:38.468172+00', '2026-11-22 12:00:42.248316+00', 'pruned'),
	(7, 1, 'inline/873a7c4b', '2026-11-22 12:01:40.380384+00', '2026-11-22 12:00:40.380384+00', '2026-11-22 12:00:42.279964+00', 'pruned'),
	(8, 1, 'inline/873a7c4b', '2026-11-22 12:01:42.333448+00', '2026-11-22 12:00:42.333448+00', '2026-11-22 12:00:44.547696+00', 'pruned'),
	(10, 1, 'inline/873a7c4b', '2026-11-22 12:01:44.771789+00', '2026-11-22 12:00:44.771789+00', '2026-11-22 12:00:48.700069+00', 'pruned'),
	(11, 1, 'inline/873a7c4b', '2026-11-22 12:01:53.357488+00', '2026-11-22 12:00:49.748297+00', '2026-11-22 12:00:53.43978+00', 'pruned'),
	(9, 1, 'inline/873a7c4b', '2026-11-22 12:01:53.357488+00', '2026-11-22 12:00:42.333448+00', '2026-11-22 12:00:58.482625+00', 'complete'),
	(13, 1, 'inline/873a7c4b', '2026-11-22 12:01:59.367494+00', '2026-11-22 12:00:59.367494+00', NULL, NULL),
	(12, 1, 'inline/873a7c4b', '2026-11-22 12:01:54.159793+00', '2026-11-22 12:00:54.159793+00', '2026-11-22 12:01:03.211708+00', 'pruned');
INSERT INTO public.deltaspace_schema VALUES
	(1, '2026-11-22 12:00:28.523616+00'),
	(2, '2026-11-22 12:00:28.523616+00'),
	(3, '2026-11-22 12:00:28.523616+00');
INSERT INTO public.events VALUES
	(1, 1, '2026-11-22 12:00:33.245248+00', 'takeover', NULL, 'keeper 1 is inline 20976');
INSERT INTO public.examples VALUES
	(1, 2, '\x5e3fef3d1140a23ee33ed83eac3ec13f433fc13fc83e7b3e2e40f23edd3db73e1e3e2440c13e643e3b3e9a3e06404b3e', '\x40029d'),
	(2, 2, '\x943e1c3e88403c3ef63e0c3f1a3ffc3d1b4054403d3fd93e81400b3fe53d043f603e7040a23e1f3e2b3e353f69400b3e', '\x400211'),
	(1, 4, '\x943ef73d3c408c3fb23e9e3e8c3feb3e6f3f5b3f903e413f4140cc3e0c3e613e643e3540873e983ea73e773e38408a3e', '\x482235'),
	(3, 2, '\x933dde3e1d41a33e833e3b3efb3e6f3d20412e40eb3ee93e1d41a23ed03ea93ed53e2541043ff43e133f163e6e41273f', '\x810000'),
	(4, 2, '\x233e6a3e3c40bc3f583e243e613f463e5e3f4740c53e1b3fa33f983e813ef83d9a3e5f3ffa3e093fd13e213e3440be3e', '\x850104'),
	(1, 8, '\x5f3d553e25401440cb3eb03e0340e03d273fe03f7d3eac3f0c40f83e8a3e5d3efe3e0640833ef83e3b3f703e3340053f', '\x810004'),
	(4, 4, '\xcf3ca33f21417040453d413d3740d83c62406f40be3d09407d40973de33ffb3c1d404740003e364043405e3d48411340', '\x850000'),
	(5, 2, '\x333fe13dbe40a63e333f8e3f553ea23eeb40a83f943f283eef40d93fe63d243f163ef2405c3fbe3dd43d583ff140943d', '\x400299'),
	(6, 2, '\x323d5f3ec1402140853f7b3f983f863d87401240ac3f8e3f54400e40ad3e8f3fa33e59406d3f633feb3ea83ecc40aa3e', '\x810000'),
	(5, 4, '\x1e3e5a3ebd40723fa03e303f0c3f583dd84017401f3fca3ecd40793f893e883ebb3ebc40fd3e403e983e093ffe402d3e', '\x810000'),
	(7, 2, '\xdc3d7d3e9b404d3ec73e213f233e8d3d40403440583fac3e6d40783fc13ed23e443f7a40793f633f2c3fda3e6840c23e', '\x810000'),
	(8, 2, '\x3a3d003f7e402c3ffe3e1a3f0c3f273d58405a40413f433f37408b3f1b3f103f663f1a40c73fb93faf3f013fda40493f', '\x810000'),
	(9, 2, '\xa43e4d3e724054402c3e623ec23fe13e8c401b400d3eb83f6c40933ece3dfd3d1f3e4f402a3ecf3d123e173ec740263e', '\x00223d'),
	(9, 4, '\x4c3ec83e5e4188405a3dc33db63f7e3e62419f3f453dc23f3e41e73d683e253dd23e2541703d5b3eea3e873dde41cf3e', '\x0c2524'),
	(10, 2, '\x8f3e403e6840ac3e483f943e0d3f003e6e40c23f2e3f1c3f65408d3f5b3ed73f3e3e5f400a3fbf3ec43ec53eaa40643e', '\x410200'),
	(11, 2, '\xed3e173f3240443ecf3efc3edd3d093fdc3f5540e23e113ed33fc33f383f323f413fe33f9e3f583ff73ee33e993fb93e', '\x121000'),
	(9, 8, '\x1d3d6c3fcf41d0403a3d9d3d0c407b3dd141ec3f283d05409c41d13d133ff93c923f70415f3dff3ece3f733d6f42863f', '\x8c2104'),
	(12, 2, '\xbd3e0d3e2940803eba3e553e9e3fb33e15404d40a63ebc3f5e40503e9c3ea13e263e0840aa3e8d3e4d3eff3d1c407a3e', '\x40008d'),
	(12, 4, '\x783e4e3e7e40633fe73db83d62406e3e4b400340f43d71409040a43d0e3fd63dac3e1d40f43d033fd13e853d8840ed3e', '\x0c0504');
INSERT INTO public.readings VALUES
	(1, 2, 1, 0.2916666666666667, '{"accuracy":0.2916666666666667,"f1":0.11574074074074074,"matthews":0.11963468332406943,"validation_loss":1.740745797753334}', 1.8194513320922852, 0.21925756199925672, 0),
	(2, 2, 1, 0.16666666666666666, '{"accuracy":0.16666666666666666,"f1":0.04938271604938271,"matthews":-0.15085093654628073,"validation_loss":1.7836238741874695}', 1.8210225105285645, 0.21925879850095953, 0),
	(1, 4, 1, 0.3333333333333333, '{"accuracy":0.3333333333333333,"f1":0.16317016317016317,"matthews":0.14284873687510252,"validation_loss":1.7572766989469528}', 1.907510221004486, 0.43413585750749917, 1),
	(3, 2, 1, 0.08333333333333333, '{"accuracy":0.08333333333333333,"f1":0.025641025641025644,"matthews":0.0,"validation_loss":1.869692901770274}', 1.8911888599395752, 0.43413784550648415, 0),
	(4, 2, 1, 0.20833333333333334, '{"accuracy":0.20833333333333334,"f1":0.10651629072681705,"matthews":0.11280907239625257,"validation_loss":1.7444713115692139}', 1.8675304651260376, 0.5115547674977279, 0),
	(1, 8, 1, 0.125, '{"accuracy":0.125,"f1":0.06734006734006734,"matthews":0.021773457205625586,"validation_loss":1.7738121151924133}', 1.8057152330875397, 1.2095156665091054, NULL),
	(4, 4, 1, 0.125, '{"accuracy":0.125,"f1":0.06231884057971015,"matthews":0.037712734136570183,"validation_loss":1.854595000545184}', 1.6633366346359253, 1.0880741640103224, 1),
	(5, 2, 1, 0.25, '{"accuracy":0.25,"f1":0.06896551724137931,"matthews":0.020805258754531666,"validation_loss":1.839832569162051}', 1.8122437596321106, 0.8285857449991454, 0),
	(6, 2, 1, 0.08333333333333333, '{"accuracy":0.08333333333333333,"f1":0.025641025641025644,"matthews":0.0,"validation_loss":1.8838860243558884}', 1.7552422881126404, 0.8285865465004463, 0),
	(5, 4, 1, 0.08333333333333333, '{"accuracy":0.08333333333333333,"f1":0.02666666666666667,"matthews":-0.03467543125755278,"validation_loss":1.8410641650358837}', 1.8806691765785217, 0.8683571034998749, 1),
	(7, 2, 1, 0.08333333333333333, '{"accuracy":0.08333333333333333,"f1":0.02666666666666667,"matthews":-0.02774034500604222,"validation_loss":1.8223157475392024}', 1.8932895064353943, 0.8683577494994097, 0),
	(8, 2, 1, 0.08333333333333333, '{"accuracy":0.08333333333333333,"f1":0.025641025641025644,"matthews":0.0,"validation_loss":1.869774689277013}', 1.9243078231811523, 0.9710509435026324, 0),
	(9, 2, 1, 0.2916666666666667, '{"accuracy":0.2916666666666667,"f1":0.1259920634920635,"matthews":0.04293783666079539,"validation_loss":1.776469384630521}', 1.8153898119926453, 0.9710517045023153, 0),
	(9, 4, 1, 0.2916666666666667, '{"accuracy":0.2916666666666667,"f1":0.07526881720430108,"matthews":0.0,"validation_loss":1.8483012368281682}', 1.764465570449829, 1.7239636544982204, 1),
	(10, 2, 1, 0.125, '{"accuracy":0.125,"f1":0.07647907647907648,"matthews":0.01364941295990332,"validation_loss":1.8193719039360683}', 1.8657153248786926, 1.7239631084994471, 0),
	(11, 2, 1, 0.125, '{"accuracy":0.125,"f1":0.037037037037037035,"matthews":0.0,"validation_loss":1.803215612967809}', 1.920150101184845, 2.1166220329978387, 0),
	(9, 8, 1, 0.25, '{"accuracy":0.25,"f1":0.11481481481481481,"matthews":0.11403328168137125,"validation_loss":1.9216641336679459}', 1.745234489440918, 3.1464511749945814, NULL),
	(12, 2, 1, 0.20833333333333334, '{"accuracy":0.20833333333333334,"f1":0.1111111111111111,"matthews":-0.009626293356836433,"validation_loss":1.758549635608991}', 1.8499602675437927, 1.9596224709966918, 0),
	(12, 4, 1, 0.20833333333333334, '{"accuracy":0.20833333333333334,"f1":0.06410256410256411,"matthews":-0.07848412451944409,"validation_loss":1.7839273413022358}', 1.8359434604644775, 1.6630666324999765, 1);
INSERT INTO public.studies VALUES
	(1, 'middle', '{"name":"middle","backbone":"embedded","task":{"kind":"classification","name":"docstrings","folder":null,"hub":null,"configuration":null,"revision":null,"text":null,"label":null,"labels":null,"source":null,"target":null,"references":null,"context":null,"question":null,"answers":null,"group":null,"groups":{},"instruction":null,"languages":null,"splits":{},"metric":"accuracy","metrics":[],"early_metric":"loss","max_tokens":16,"max_target_tokens":64,"label_smoothing":0.0,"decoding":{"beams":1,"max_new_tokens":null,"min_new_tokens":0,"length_penalty":1.0,"no_repeat_ngram":0},"train_examples":96,"validation_examples":24,"preset":null},"budget":4500,"trials":20,"seed":5,"training":{"steps":8,"batch_size":8,"head_learning_rate":0.005,"warmup_fraction":0.06,"weight_decay":0.0,"betas":[0.9,0.999],"clip_norm":1.0,"precision":"fp32"},"pruning":{"first_rung_steps":2,"reduction":2,"rule":"ranks","protect_published":"best"},"search":{"published":["lora_qv"],"published_scale":2.0,"attention_forms":["softmax_memory","bottleneck","lowrank","diag","const"],"ffn_forms":["bottleneck","lowrank","softmax_memory","diag","const"],"sites":"tied","layers":["all"],"edits_per_side":[1,2],"activations":["relu","gelu","silu","tanh"],"gates":["add","scale","scale_learned","lse_convex","inducer"],"scales":[2.0,4.0],"scale_per":["sublayer"],"key_widths":[null,4],"norms":["none"],"biases":["usual"],"inits":["lora"],"reparameterizations":[null],"products":[4],"factors":[1],"sharing":["shared"],"near_duplicates":false,"attention_share":[0.05,0.95],"split":[0.05,0.95],"learning_rates":{"softmax_memory":[0.003,0.05],"bottleneck":[0.001,0.01],"lowrank":[0.001,0.02],"phm":[0.001,0.02],"diag":[0.003,0.05],"const":[0.001,0.01],"prompt":[0.01,0.3],"encoded_prompt":[0.0003,0.01],"full":[1e-05,0.0005],"sparse":[1e-05,0.0005],"intrinsic":[0.001,0.1]},"sampler":"factored","draws":"structures","first_rates":"expected","replicates":2},"fleet":{"backend":"inline","workers":"auto","pack":2,"time_budget":null,"artefacts":"@ARTEFACTS@"}}', 'embedded', 5454336, 4500, 'accuracy', 5, 1, '2026-11-22 12:00:28.53545+00', 'search', NULL);
INSERT INTO public.trials VALUES
	(1, 1, 0, 'complete', 0.125, NULL, 8, 0.125, 1, 'published', 'lora_qv', 'scaled LoRA of 1 at q, v (LoRA on q, v)', 'lowrank', 'q+v', 'parallel', 'scale', 'single', 1, NULL, 2, 0.0033144540173399867, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1, 4096, 4096, 1542, 2034869288, '256065e9f5677273239570bd2c80e471', '{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"q","read":"x_attn","form":{"name":"lowrank","width":1,"widened":0,"heads":"single","bias":false},"gate":{"name":"scale","value":2.0}},{"site":"attn","layers":{"name":"all"},"write":"v","read":"ctx","form":{"name":"lowrank","width":1,"widened":0,"heads":"single","bias":false},"gate":{"name":"scale","value":2.0}}]}', '{"learning_rate.lowrank":0.0033144540173399867}', '2026-11-22 12:00:33.309006+00', '2026-11-22 12:00:38.288036+00', NULL),
	(2, 1, 1, 'pruned', NULL, 'rung 0 (2 steps): 0.1667 below the cut 0.2917', 2, 0.16666666666666666, 1, 'proposed', NULL, 'scaled tanh sequential adapter of 2 at k', 'bottleneck', 'k', 'sequential', 'scale', 'single', 2, 'tanh', 2, 0.002446044614880099, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1, 4096, 4096, 1542, 396060440, 'f04bf40164a3c41e23541330ff84cf9b', '{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"k","read":"k","form":{"name":"bottleneck","width":2,"widened":0,"activation":"tanh","heads":"single","bias":false,"norm":"none","init":"lora","reparameterization":null},"gate":{"name":"scale","value":2.0}}]}', '{"placement":"attention","attention.edits":"1","attention.form":"bottleneck","attention.bottleneck.write":"k","attention.bottleneck.k.read":"k","attention.bottleneck.gate":"scale","attention.activation":"tanh","attention.scale":"2.0","learning_rate.bottleneck":0.002446044614880099}', '2026-11-22 12:00:33.309006+00', '2026-11-22 12:00:33.82482+00', NULL),
	(3, 1, 2, 'pruned', NULL, 'rung 0 (2 steps): 0.08333 below the cut 0.2917', 2, 0.08333333333333333, 1, 'proposed', NULL, 'scaled sequential softmax memory of 2 at the residual sum', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'softmax_memory', 'sum', 'sequential', 'scale', 'single', 2, NULL, 2, 0.026230721491232317, 0, 4096, 4096, 1542, 1656311285, '28f02fee7d0e4bb993cc0e7b185c6962', '{"schema_version":2,"edits":[{"site":"ffn","layers":{"name":"all"},"write":"sum","read":"sum","form":{"name":"softmax_memory","width":2,"widened":0,"heads":"single","reparameterization":null,"robust":false},"gate":{"name":"scale","value":2.0}}]}', '{"placement":"ffn","ffn.edits":"1","ffn.form":"softmax_memory","ffn.softmax_memory.write":"sum","ffn.softmax_memory.gate":"scale","ffn.scale":"2.0","learning_rate.softmax_memory":0.026230721491232317}', '2026-11-22 12:00:33.875842+00', '2026-11-22 12:00:34.947674+00', NULL),
	(6, 1, 5, 'pruned', NULL, 'rung 0 (2 steps): 0.08333 below the cut 0.2083', 2, 0.08333333333333333, 1, 'proposed', NULL, 'scaled parallel low-rank map of 2 at the FFN', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'lowrank', 'f', 'parallel', 'scale', 'single', 2, NULL, 2, 0.003255276284135499, 0, 4096, 4096, 1542, 851471095, 'e200b4ab7181c481e89199e50b771d97', '{"schema_version":2,"edits":[{"site":"ffn","layers":{"name":"all"},"write":"f","read":"x_ffn","form":{"name":"lowrank","width":2,"widened":0,"heads":"single","bias":false},"gate":{"name":"scale","value":2.0}}]}', '{"placement":"ffn","ffn.edits":"1","ffn.form":"lowrank","ffn.lowrank.write":"f","ffn.lowrank.f.read":"x_ffn","ffn.lowrank.gate":"scale","ffn.scale":"2.0","learning_rate.lowrank":0.003255276284135499}', '2026-11-22 12:00:38.468172+00', '2026-11-22 12:00:40.351622+00', NULL),
	(4, 1, 3, 'pruned', NULL, 'rung 1 (4 steps): 0.125 below the cut 0.3333', 4, 0.125, 1, 'proposed', NULL, 'learned-scale parallel softmax memory of 1 at k + scaled sequential low-rank map of 1 at the residual sum', 'softmax_memory', 'k', 'parallel', 'scale_learned', 'single', 1, NULL, NULL, 0.009171530297326454, 'lowrank', 'sum', 'sequential', 'scale', 'single', 1, NULL, 4, 0.001023460891981933, 0.5004878048780488, 4100, 4100, 1542, 1034300484, 'de03224070a50661a090cc4b9d531783', '{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"k","read":"ctx","form":{"name":"softmax_memory","width":1,"widened":0,"heads":"single","reparameterization":null,"robust":false},"gate":{"name":"scale_learned","per":"sublayer"}},{"site":"ffn","layers":{"name":"all"},"write":"sum","read":"sum","form":{"name":"lowrank","width":1,"widened":0,"heads":"single","bias":false},"gate":{"name":"scale","value":4.0}}]}', '{"placement":"both","attention.edits":"1","attention.form":"softmax_memory","attention.softmax_memory.write":"k","attention.softmax_memory.k.read":"ctx","attention.softmax_memory.gate":"scale_learned","ffn.edits":"1","ffn.form":"lowrank","ffn.lowrank.write":"sum","ffn.lowrank.gate":"scale","ffn.scale":"4.0","attention_share":0.5507488078266314,"learning_rate.softmax_memory":0.009171530297326454,"learning_rate.lowrank":0.001023460891981933}', '2026-11-22 12:00:34.997055+00', '2026-11-22 12:00:38.363566+00', NULL),
	(5, 1, 4, 'pruned', NULL, 'rung 1 (4 steps): 0.08333 below the cut 0.3333', 4, 0.08333333333333333, 1, 'proposed', NULL, 'learned-scale silu multi-head parallel adapter of 1–2 at the heads + scaling at the residual sum', 'bottleneck', 'head', 'parallel', 'scale_learned', 'query_heads', 1, 'silu', NULL, 0.0012965277473366147, 'diag', 'sum', 'sequential', 'mul', 'single', NULL, NULL, NULL, 0.0064597791762622155, 0.7502439024390244, 4100, 4100, 1542, 902763100, '98b8bd26d687a2a7cbef770d829db4de', '{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"head","read":"q","form":{"name":"bottleneck","width":1,"widened":2,"activation":"silu","heads":"query_heads","bias":false,"norm":"none","init":"lora","reparameterization":null},"gate":{"name":"scale_learned","per":"sublayer"}},{"site":"ffn","layers":{"name":"all"},"write":"sum","read":"sum","form":{"name":"diag"},"gate":{"name":"mul"}}]}', '{"placement":"both","attention.edits":"1","attention.form":"bottleneck","attention.bottleneck.write":"head","attention.bottleneck.head.read":"q","attention.bottleneck.inducer_gate":"scale_learned","attention.activation":"silu","ffn.edits":"1","ffn.form":"diag","ffn.diag.write":"sum","learning_rate.bottleneck":0.0012965277473366147,"learning_rate.diag":0.0064597791762622155}', '2026-11-22 12:00:38.468172+00', '2026-11-22 12:00:42.248316+00', NULL),
	(8, 1, 7, 'pruned', NULL, 'rung 0 (2 steps): 0.08333 below the cut 0.1667', 2, 0.08333333333333333, 1, 'proposed', NULL, 'learned-scale sequential softmax memory of 2 at the FFN', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'softmax_memory', 'f', 'sequential', 'scale_learned', 'single', 2, NULL, NULL, 0.03133583354110721, 0, 4100, 4100, 1542, 1412250737, '56536d708abe791a4320650e8e3b71fd', '{"schema_version":2,"edits":[{"site":"ffn","layers":{"name":"all"},"write":"f","read":"f","form":{"name":"softmax_memory","width":2,"widened":0,"heads":"single","reparameterization":null,"robust":false},"gate":{"name":"scale_learned","per":"sublayer"}}]}', '{"placement":"ffn","ffn.edits":"1","ffn.form":"softmax_memory","ffn.softmax_memory.write":"f","ffn.softmax_memory.f.read":"f","ffn.softmax_memory.gate":"scale_learned","learning_rate.softmax_memory":0.03133583354110721}', '2026-11-22 12:00:42.333448+00', '2026-11-22 12:00:44.547696+00', NULL),
	(7, 1, 6, 'pruned', NULL, 'rung 0 (2 steps): 0.08333 below the cut 0.2083', 2, 0.08333333333333333, 1, 'proposed', NULL, 'multi-head parallel low-rank map of 1–2 at the heads + learned-scale parallel diagonal at the FFN', 'lowrank', 'head', 'parallel', 'add', 'query_heads', 1, NULL, NULL, 0.0011415292137481462, 'diag', 'f', 'parallel', 'scale_learned', 'single', NULL, NULL, NULL, 0.04391119212397688, 0.7492682926829268, 4100, 4100, 1542, 135052459, '309fbb8254528b437d7eec1e73768b16', '{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"head","read":"q","form":{"name":"lowrank","width":1,"widened":2,"heads":"query_heads","bias":false},"gate":{"name":"add"}},{"site":"ffn","layers":{"name":"all"},"write":"f","read":"x_ffn","form":{"name":"diag"},"gate":{"name":"scale_learned","per":"sublayer"}}]}', '{"placement":"both","attention.edits":"1","attention.form":"lowrank","attention.lowrank.write":"head","attention.lowrank.head.read":"q","attention.lowrank.inducer_gate":"add","ffn.edits":"1","ffn.form":"diag","ffn.diag.write":"f","ffn.diag.f.read":"x_ffn","ffn.diag.gate":"scale_learned","learning_rate.lowrank":0.0011415292137481462,"learning_rate.diag":0.04391119212397688}', '2026-11-22 12:00:40.380384+00', '2026-11-22 12:00:42.279964+00', NULL),
	(11, 1, 10, 'pruned', NULL, 'rung 0 (2 steps): 0.125 below the cut 0.1667', 2, 0.125, 1, 'proposed', NULL, 'prefix of 1 at the heads + learned-scale parallel softmax memory of 1 at the FFN', 'softmax_memory', 'head', 'parallel', 'lse_convex', 'key_value_heads', 1, NULL, NULL, 0.009058951557516985, 'softmax_memory', 'f', 'parallel', 'scale_learned', 'single', 1, NULL, NULL, 0.009058951557516985, 0.4995121951219512, 4100, 4100, 1542, 2035657662, '899bcf69cbe171fa0becc69924abd637', '{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"head","read":"q","form":{"name":"softmax_memory","width":1,"widened":0,"heads":"key_value_heads","reparameterization":null,"robust":false},"gate":{"name":"lse_convex"}},{"site":"ffn","layers":{"name":"all"},"write":"f","read":"x_ffn","form":{"name":"softmax_memory","width":1,"widened":0,"heads":"single","reparameterization":null,"robust":false},"gate":{"name":"scale_learned","per":"sublayer"}}]}', '{"placement":"both","attention.edits":"1","attention.form":"softmax_memory","attention.softmax_memory.write":"head","attention.softmax_memory.head.read":"q","attention.softmax_memory.prefix_gate":"lse_convex","ffn.edits":"1","ffn.form":"softmax_memory","ffn.softmax_memory.write":"f","ffn.softmax_memory.f.read":"x_ffn","ffn.softmax_memory.gate":"scale_learned","attention_share":0.2497560975609756,"learning_rate.softmax_memory":0.009058951557516985}', '2026-11-22 12:00:49.748297+00', '2026-11-22 12:00:53.43978+00', NULL),
	(10, 1, 9, 'pruned', NULL, 'rung 0 (2 steps): 0.125 below the cut 0.1667', 2, 0.125, 1, 'proposed', NULL, 'bias at v + sequential softmax memory of 1–2 at the FFN', 'const', 'v', 'sequential', 'add', 'single', NULL, NULL, NULL, 0.00757039534357777, 'softmax_memory', 'f', 'sequential', 'add', 'single', 1, NULL, NULL, 0.009556782374077607, 0.25, 4096, 4096, 1542, 1764436165, '2fbabe0aa10ec18cccfe70cf9afa4ba9', '{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"v","read":null,"form":{"name":"const"},"gate":{"name":"add"}},{"site":"ffn","layers":{"name":"all"},"write":"f","read":"f","form":{"name":"softmax_memory","width":1,"widened":2,"heads":"single","reparameterization":null,"robust":false},"gate":{"name":"add"}}]}', '{"placement":"both","attention.edits":"1","attention.form":"const","attention.const.write":"v","ffn.edits":"1","ffn.form":"softmax_memory","ffn.softmax_memory.write":"f","ffn.softmax_memory.f.read":"f","ffn.softmax_memory.gate":"add","learning_rate.const":0.00757039534357777,"learning_rate.softmax_memory":0.009556782374077607}', '2026-11-22 12:00:44.771789+00', '2026-11-22 12:00:48.700069+00', NULL),
	(9, 1, 8, 'complete', 0.25, NULL, 8, 0.25, 1, 'proposed', NULL, 'parallel diagonal at attention''s output + learned-scale parallel softmax memory of 1–2 at the FFN', 'diag', 'o', 'parallel', 'add', 'single', NULL, NULL, NULL, 0.012076004021913157, 'softmax_memory', 'f', 'parallel', 'scale_learned', 'single', 1, NULL, NULL, 0.004611718516969259, 0.2497560975609756, 4100, 4100, 1542, 855797222, 'fe6b006b0b44aa972eb6cb701add429f', '{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"o","read":"x_attn","form":{"name":"diag"},"gate":{"name":"add"}},{"site":"ffn","layers":{"name":"all"},"write":"f","read":"x_ffn","form":{"name":"softmax_memory","width":1,"widened":2,"heads":"single","reparameterization":null,"robust":false},"gate":{"name":"scale_learned","per":"sublayer"}}]}', '{"placement":"both","attention.edits":"1","attention.form":"diag","attention.diag.write":"o","attention.diag.o.read":"x_attn","attention.diag.gate":"add","ffn.edits":"1","ffn.form":"softmax_memory","ffn.softmax_memory.write":"f","ffn.softmax_memory.f.read":"x_ffn","ffn.softmax_memory.gate":"scale_learned","learning_rate.diag":0.012076004021913157,"learning_rate.softmax_memory":0.004611718516969259}', '2026-11-22 12:00:42.333448+00', '2026-11-22 12:00:58.482625+00', NULL),
	(13, 1, 12, 'running', NULL, NULL, 0, NULL, 1, 'proposed', NULL, 'parallel diagonal at attention''s output + learned-scale parallel softmax memory of 1–2 at the FFN', 'diag', 'o', 'parallel', 'add', 'single', NULL, NULL, NULL, 0.012076004021913157, 'softmax_memory', 'f', 'parallel', 'scale_learned', 'single', 1, NULL, NULL, 0.008526411479885355, 0.2497560975609756, 4100, 4100, 1542, 1364048906, '496e5dff9008c92f6ea6fd6942cc80fa', '{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"o","read":"x_attn","form":{"name":"diag"},"gate":{"name":"add"}},{"site":"ffn","layers":{"name":"all"},"write":"f","read":"x_ffn","form":{"name":"softmax_memory","width":1,"widened":2,"heads":"single","reparameterization":null,"robust":false},"gate":{"name":"scale_learned","per":"sublayer"}}]}', '{"placement":"both","attention.edits":"1","attention.form":"diag","attention.diag.write":"o","attention.diag.o.read":"x_attn","attention.diag.gate":"add","ffn.edits":"1","ffn.form":"softmax_memory","ffn.softmax_memory.write":"f","ffn.softmax_memory.f.read":"x_ffn","ffn.softmax_memory.gate":"scale_learned","learning_rate.diag":0.012076004021913157,"learning_rate.softmax_memory":0.008526411479885355}', '2026-11-22 12:00:59.367494+00', NULL, NULL),
	(12, 1, 11, 'pruned', NULL, 'rung 1 (4 steps): 0.2083 below the cut 0.2917', 4, 0.20833333333333334, 1, 'proposed', NULL, 'scaled LoRA of 1 at q + learned-scale parallel softmax memory of 1 at the FFN', 'lowrank', 'q', 'parallel', 'scale', 'single', 1, NULL, 2, 0.0033144540173399867, 'softmax_memory', 'f', 'parallel', 'scale_learned', 'single', 1, NULL, NULL, 0.007578209400307223, 0.4995121951219512, 4100, 4100, 1542, 8270963, 'a90d6c3ee63d78cfd463cfb6457bf642', '{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"q","read":"x_attn","form":{"name":"lowrank","width":1,"widened":0,"heads":"single","bias":false},"gate":{"name":"scale","value":2.0}},{"site":"ffn","layers":{"name":"all"},"write":"f","read":"x_ffn","form":{"name":"softmax_memory","width":1,"widened":0,"heads":"single","reparameterization":null,"robust":false},"gate":{"name":"scale_learned","per":"sublayer"}}]}', '{"placement":"both","attention.edits":"1","attention.form":"lowrank","attention.lowrank.write":"q","attention.lowrank.gate":"scale","attention.scale":"2.0","ffn.edits":"1","ffn.form":"softmax_memory","ffn.softmax_memory.write":"f","ffn.softmax_memory.f.read":"x_ffn","ffn.softmax_memory.gate":"scale_learned","attention_share":0.2497560975609756,"learning_rate.lowrank":0.0033144540173399867,"learning_rate.softmax_memory":0.007578209400307223}', '2026-11-22 12:00:54.159793+00', '2026-11-22 12:01:03.211708+00', NULL);
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
