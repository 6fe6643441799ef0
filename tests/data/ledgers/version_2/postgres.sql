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
    CONSTRAINT ck_trials_origin CHECK ((origin = ANY (ARRAY['published'::text, 'proposed'::text]))),
    CONSTRAINT ck_trials_parameters CHECK (((stored_parameters >= 0) AND (trained_parameters >= 0) AND (head_parameters >= 0))),
    CONSTRAINT ck_trials_reason_exactly_when_cut CHECK (((state = ANY (ARRAY['pruned'::text, 'failed'::text])) = (reason IS NOT NULL))),
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
	(4, 1, 'delta', 8, '@ARTEFACTS@/middle/trial-0/attempt-1/step-000008.safetensors', '1cf6d2c45b1b15b51543f8135fabd2d285005c925f4668aa1c071de2b478df71', 77064),
	(5, 9, 'snapshot', 2, '@ARTEFACTS@/middle/trial-8/attempt-1/step-000002.safetensors', '3eb63bedb33f5643dfde78626255df16de08935b2c76ef192e300a078df977ba', 33864);
INSERT INTO public.attempts VALUES
	(2, 1, 'inline/6ef4e477', '2026-11-22 12:00:30.513066+00', '2026-11-22 11:59:30.513066+00', '2026-11-22 11:59:37.391834+00', 'pruned'),
	(3, 1, 'inline/6ef4e477', '2026-11-22 12:00:37.463541+00', '2026-11-22 11:59:37.463541+00', '2026-11-22 11:59:38.846161+00', 'pruned'),
	(1, 1, 'inline/6ef4e477', '2026-11-22 12:00:30.513066+00', '2026-11-22 11:59:30.513066+00', '2026-11-22 11:59:41.076967+00', 'complete'),
	(4, 1, 'inline/6ef4e477', '2026-11-22 12:00:38.896284+00', '2026-11-22 11:59:38.896284+00', '2026-11-22 11:59:41.109173+00', 'pruned'),
	(5, 1, 'inline/6ef4e477', '2026-11-22 12:00:41.172794+00', '2026-11-22 11:59:41.172794+00', '2026-11-22 11:59:43.434026+00', 'pruned'),
	(6, 1, 'inline/6ef4e477', '2026-11-22 12:00:41.172794+00', '2026-11-22 11:59:41.172794+00', '2026-11-22 11:59:43.465189+00', 'pruned'),
	(7, 1, 'inline/6ef4e477', '2026-11-22 12:00:43.500678+00', '2026-11-22 11:59:43.500678+00', '2026-11-22 11:59:44.221809+00', 'pruned'),
	(8, 1, 'inline/6ef4e477', '2026-11-22 12:00:43.500678+00', '2026-11-22 11:59:43.500678+00', '2026-11-22 11:59:44.243772+00', 'pruned'),
	(9, 1, 'inline/6ef4e477', '2026-11-22 12:00:44.275906+00', '2026-11-22 11:59:44.275906+00', NULL, NULL),
	(10, 1, 'inline/6ef4e477', '2026-11-22 12:00:44.275906+00', '2026-11-22 11:59:44.275906+00', '2026-11-22 11:59:45.07569+00', 'pruned'),
	(11, 1, 'inline/6ef4e477', '2026-11-22 12:00:45.155605+00', '2026-11-22 11:59:45.155605+00', NULL, NULL);
INSERT INTO public.deltaspace_schema VALUES
	(1, '2026-11-22 11:59:24.179736+00'),
	(2, '2026-11-22 11:59:24.179736+00');
INSERT INTO public.events VALUES
	(1, 1, '2026-11-22 11:59:30.433308+00', 'takeover', NULL, 'keeper 1 is inline 20336');
INSERT INTO public.readings VALUES
	(1, 2, 1, 0.175, '{"accuracy":0.175,"f1":0.07564102564102564,"matthews":0.0529875653714895,"validation_loss":1.787633517384529}', 1.8192303776741028, 3.3240285695028433, 0),
	(2, 2, 1, 0.1, '{"accuracy":0.1,"f1":0.03333333333333333,"matthews":-0.10054050865359547,"validation_loss":1.8373415768146515}', 1.8212355375289917, 3.3240295660034462, 0),
	(1, 4, 1, 0.25, '{"accuracy":0.25,"f1":0.12626262626262627,"matthews":0.10337614649108637,"validation_loss":1.7802436619997024}', 1.9074118733406067, 0.6344215269964479, 1),
	(3, 2, 1, 0.15, '{"accuracy":0.15,"f1":0.06190476190476191,"matthews":0.03542212513629572,"validation_loss":1.8950501948595047}', 1.9048523306846619, 0.6344223734995467, 0),
	(4, 2, 1, 0.225, '{"accuracy":0.225,"f1":0.10918114143920594,"matthews":0.06382980226803926,"validation_loss":1.7684357821941377}', 1.8737311959266663, 0.5772224180036574, 0),
	(1, 8, 1, 0.125, '{"accuracy":0.125,"f1":0.05675954592363261,"matthews":-0.05588479132508269,"validation_loss":1.7848345071077347}', 1.805893063545227, 0.8562415889973636, NULL),
	(4, 4, 1, 0.175, '{"accuracy":0.175,"f1":0.08231707317073171,"matthews":0.08511470514282515,"validation_loss":1.8637774646282197}', 1.6340416073799133, 0.5496783529961249, 1),
	(5, 2, 1, 0.175, '{"accuracy":0.175,"f1":0.09307359307359307,"matthews":0.09462916232627815,"validation_loss":1.845337337255478}', 1.8160221576690674, 1.085874218500976, 0),
	(6, 2, 1, 0.125, '{"accuracy":0.125,"f1":0.037037037037037035,"matthews":0.0,"validation_loss":1.8975389629602433}', 1.7526726126670837, 1.0858752650019596, 0),
	(7, 2, 1, 0.125, '{"accuracy":0.125,"f1":0.03875968992248062,"matthews":-0.0022383971222927233,"validation_loss":1.8258231818675994}', 1.8890018463134766, 0.32242529850191204, 0),
	(8, 2, 1, 0.1, '{"accuracy":0.1,"f1":0.031007751937984496,"matthews":-0.09462916232627815,"validation_loss":1.8340028554201127}', 1.89839106798172, 0.3224257639994903, 0),
	(9, 2, 1, 0.25, '{"accuracy":0.25,"f1":0.11679454390451834,"matthews":0.0280288625257464,"validation_loss":1.7935461044311523}', 1.8133000135421753, 0.29532095200193, 0),
	(10, 2, 1, 0.15, '{"accuracy":0.15,"f1":0.08465608465608465,"matthews":0.03710150538354143,"validation_loss":1.816413450241089}', 1.8620769381523132, 0.2953214430017397, 0);
INSERT INTO public.studies VALUES
	(1, 'middle', '{"name":"middle","backbone":"embedded","task":{"preset":null,"kind":"classification","name":"docstrings","folder":null,"hub":null,"configuration":null,"revision":null,"text":null,"label":null,"labels":null,"source":null,"target":null,"references":null,"context":null,"question":null,"answers":null,"group":null,"groups":{},"instruction":null,"languages":null,"splits":{},"metric":"accuracy","metrics":[],"early_metric":"loss","max_tokens":16,"max_target_tokens":64,"label_smoothing":0.0,"decoding":{"beams":1,"max_new_tokens":null,"min_new_tokens":0,"length_penalty":1.0,"no_repeat_ngram":0},"train_examples":96,"validation_examples":40},"budget":4500,"trials":12,"seed":5,"training":{"steps":8,"batch_size":8,"head_learning_rate":0.005,"warmup_fraction":0.06,"weight_decay":0.0,"betas":[0.9,0.999],"clip_norm":1.0,"precision":"fp32"},"pruning":{"first_rung_steps":2,"reduction":2,"protect_published":true},"search":{"sampler":"tpe","published":["lora_qv"],"published_scale":2.0,"attention_forms":["softmax_memory","bottleneck","lowrank","diag","const"],"ffn_forms":["bottleneck","lowrank","softmax_memory","diag","const"],"sites":"tied","layers":["all"],"activations":["relu","gelu","silu","tanh"],"gates":["add","scale","scale_learned","lse_convex","inducer"],"scales":[2.0,4.0],"scale_per":["sublayer"],"key_widths":[null,4],"norms":["none"],"biases":["usual"],"inits":["lora"],"reparameterizations":[null],"products":[4],"factors":[1],"sharing":["shared"],"near_duplicates":false,"attention_share":[0.05,0.95],"learning_rates":{"softmax_memory":[0.003,0.05],"bottleneck":[0.001,0.01],"lowrank":[0.001,0.02],"phm":[0.001,0.02],"diag":[0.003,0.05],"const":[0.001,0.01],"prompt":[0.01,0.3],"encoded_prompt":[0.0003,0.01],"full":[1e-05,0.0005],"sparse":[1e-05,0.0005],"intrinsic":[0.001,0.1]}},"fleet":{"backend":"inline","workers":"auto","pack":2,"time_budget":null,"artefacts":"@ARTEFACTS@"}}', 'embedded', 5454336, 4500, 'accuracy', 5, 1, '2026-11-22 11:59:24.208252+00', 'search', NULL);
INSERT INTO public.trials VALUES
	(5, 1, 4, 'pruned', NULL, 'rung 0 (2 steps): 0.175 ties the cut, and an earlier trial has it: 0.175', 2, 0.175, 1, 'proposed', NULL, 'LoRA of 1–2 at v + bias at the FFN', 'lowrank', 'v', 'parallel', 'add', 'single', 1, NULL, NULL, 0.006558990292800692, 'const', 'f', 'sequential', 'add', 'single', NULL, NULL, NULL, 0.009724169026346522, 0.75, 4096, 4096, 1542, 902763100, '0d577b2283b1ea268cde082395d5d87f', '{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"v","read":"ctx","form":{"name":"lowrank","width":1,"widened":2,"heads":"single","bias":false},"gate":{"name":"add"}},{"site":"ffn","layers":{"name":"all"},"write":"f","read":null,"form":{"name":"const"},"gate":{"name":"add"}}]}', '{"placement":"both","attention.form":"lowrank","attention.lowrank.write":"v","attention.lowrank.gate":"add","ffn.form":"const","learning_rate.lowrank":0.006558990292800692,"learning_rate.const":0.009724169026346522}', '2026-11-22 11:59:41.172794+00', '2026-11-22 11:59:43.434026+00'),
	(2, 1, 1, 'pruned', NULL, 'rung 0 (2 steps): 0.1 below the cut 0.175', 2, 0.1, 1, 'proposed', NULL, 'learned-scale parallel low-rank map of 2 at the FFN', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'lowrank', 'f', 'parallel', 'scale_learned', 'single', 2, NULL, NULL, 0.0016364153821213584, 0, 4100, 4100, 1542, 396060440, '726c65568fed31a5b44bc6d76eeffe08', '{"schema_version":2,"edits":[{"site":"ffn","layers":{"name":"all"},"write":"f","read":"x_ffn","form":{"name":"lowrank","width":2,"widened":0,"heads":"single","bias":false},"gate":{"name":"scale_learned","per":"sublayer"}}]}', '{"placement":"ffn","ffn.form":"lowrank","ffn.lowrank.write":"f","ffn.lowrank.f.read":"x_ffn","ffn.lowrank.gate":"scale_learned","learning_rate.lowrank":0.0016364153821213584}', '2026-11-22 11:59:30.513066+00', '2026-11-22 11:59:37.391834+00'),
	(1, 1, 0, 'complete', 0.125, NULL, 8, 0.125, 1, 'published', 'lora_qv', 'scaled LoRA of 1 at q, v (LoRA on q, v)', 'lowrank', 'q+v', 'parallel', 'scale', 'single', 1, NULL, 2, 0.0011273008389395965, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1, 4096, 4096, 1542, 2034869288, '8b1140b882ce9d4cded5214cd7f4590b', '{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"q","read":"x_attn","form":{"name":"lowrank","width":1,"widened":0,"heads":"single","bias":false},"gate":{"name":"scale","value":2.0}},{"site":"attn","layers":{"name":"all"},"write":"v","read":"ctx","form":{"name":"lowrank","width":1,"widened":0,"heads":"single","bias":false},"gate":{"name":"scale","value":2.0}}]}', '{"learning_rate.lowrank":0.0011273008389395965}', '2026-11-22 11:59:30.513066+00', '2026-11-22 11:59:41.076967+00'),
	(3, 1, 2, 'pruned', NULL, 'rung 0 (2 steps): 0.15 below the cut 0.175', 2, 0.15, 1, 'proposed', NULL, 'bias at q + scaled sequential softmax memory of 1–2 at the residual sum', 'const', 'q', 'sequential', 'add', 'single', NULL, NULL, NULL, 0.0020956562754822234, 'softmax_memory', 'sum', 'sequential', 'scale', 'single', 1, NULL, 4, 0.022604215708001335, 0.25, 4096, 4096, 1542, 1656311285, '143727d59073a5c9125c40858e24dc89', '{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"q","read":null,"form":{"name":"const"},"gate":{"name":"add"}},{"site":"ffn","layers":{"name":"all"},"write":"sum","read":"sum","form":{"name":"softmax_memory","width":1,"widened":2,"heads":"single","reparameterization":null,"robust":false},"gate":{"name":"scale","value":4.0}}]}', '{"placement":"both","attention.form":"const","attention.const.write":"q","ffn.form":"softmax_memory","ffn.softmax_memory.write":"sum","ffn.softmax_memory.gate":"scale","ffn.scale":"4.0","learning_rate.const":0.0020956562754822234,"learning_rate.softmax_memory":0.022604215708001335}', '2026-11-22 11:59:37.463541+00', '2026-11-22 11:59:38.846161+00'),
	(6, 1, 5, 'pruned', NULL, 'rung 0 (2 steps): 0.125 below the cut 0.175', 2, 0.125, 1, 'proposed', NULL, 'scaling at k, v', 'diag', 'k+v', 'sequential', 'mul', 'single', NULL, NULL, NULL, 0.003316082178938585, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1, 2048, 2048, 1542, 851471095, '70b269b28b3fe6df23faec59978fc5de', '{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"k","read":"k","form":{"name":"diag"},"gate":{"name":"mul"}},{"site":"attn","layers":{"name":"all"},"write":"v","read":"v","form":{"name":"diag"},"gate":{"name":"mul"}}]}', '{"placement":"attention","attention.form":"diag","attention.diag.write":"k+v","learning_rate.diag":0.003316082178938585}', '2026-11-22 11:59:41.172794+00', '2026-11-22 11:59:43.465189+00'),
	(4, 1, 3, 'pruned', NULL, 'rung 1 (4 steps): 0.175 below the cut 0.25', 4, 0.175, 1, 'proposed', NULL, 'sequential softmax memory of 2 at the residual sum', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'softmax_memory', 'sum', 'sequential', 'add', 'single', 2, NULL, NULL, 0.014863972904482117, 0, 4096, 4096, 1542, 1034300484, '99cd25c63dc3060254c703fb30b54ca3', '{"schema_version":2,"edits":[{"site":"ffn","layers":{"name":"all"},"write":"sum","read":"sum","form":{"name":"softmax_memory","width":2,"widened":0,"heads":"single","reparameterization":null,"robust":false},"gate":{"name":"add"}}]}', '{"placement":"ffn","ffn.form":"softmax_memory","ffn.softmax_memory.write":"sum","ffn.softmax_memory.gate":"add","learning_rate.softmax_memory":0.014863972904482117}', '2026-11-22 11:59:38.896284+00', '2026-11-22 11:59:41.109173+00'),
	(7, 1, 6, 'pruned', NULL, 'rung 0 (2 steps): 0.125 below the cut 0.175', 2, 0.125, 1, 'proposed', NULL, 'scaled LoRA of 2 at k', 'lowrank', 'k', 'parallel', 'scale', 'single', 2, NULL, 4, 0.001089724641793813, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1, 4096, 4096, 1542, 135052459, '887e1538eace3848e4e0aa879bcbfec8', '{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"k","read":"ctx","form":{"name":"lowrank","width":2,"widened":0,"heads":"single","bias":false},"gate":{"name":"scale","value":4.0}}]}', '{"placement":"attention","attention.form":"lowrank","attention.lowrank.write":"k","attention.lowrank.gate":"scale","attention.scale":"4.0","learning_rate.lowrank":0.001089724641793813}', '2026-11-22 11:59:43.500678+00', '2026-11-22 11:59:44.221809+00'),
	(8, 1, 7, 'pruned', NULL, 'rung 0 (2 steps): 0.1 below the cut 0.15', 2, 0.1, 1, 'proposed', NULL, 'parallel diagonal at q + bias at the FFN', 'diag', 'q', 'parallel', 'add', 'single', NULL, NULL, NULL, 0.006892877089793905, 'const', 'f', 'sequential', 'add', 'single', NULL, NULL, NULL, 0.0011329556688542473, 0.5, 2048, 2048, 1542, 1412250737, 'e6b21a4a5d2bcfcaaa80731c3a9d3737', '{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"q","read":"x_attn","form":{"name":"diag"},"gate":{"name":"add"}},{"site":"ffn","layers":{"name":"all"},"write":"f","read":null,"form":{"name":"const"},"gate":{"name":"add"}}]}', '{"placement":"both","attention.form":"diag","attention.diag.write":"q","attention.diag.q.read":"x_attn","attention.diag.gate":"add","ffn.form":"const","learning_rate.diag":0.006892877089793905,"learning_rate.const":0.0011329556688542473}', '2026-11-22 11:59:43.500678+00', '2026-11-22 11:59:44.243772+00'),
	(9, 1, 8, 'running', NULL, NULL, 2, 0.25, 1, 'proposed', NULL, 'bias at the FFN', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'const', 'f', 'sequential', 'add', 'single', NULL, NULL, NULL, 0.0016391667010990203, 0, 1024, 1024, 1542, 855797222, '6a82a06b3fcf9c0f191b1993e39d0302', '{"schema_version":2,"edits":[{"site":"ffn","layers":{"name":"all"},"write":"f","read":null,"form":{"name":"const"},"gate":{"name":"add"}}]}', '{"placement":"ffn","ffn.form":"const","learning_rate.const":0.0016391667010990203}', '2026-11-22 11:59:44.275906+00', NULL),
	(10, 1, 9, 'pruned', NULL, 'rung 0 (2 steps): 0.15 ties the cut, and an earlier trial has it: 0.15', 2, 0.15, 1, 'proposed', NULL, 'parallel softmax memory of 2 at attention''s output', 'softmax_memory', 'o', 'parallel', 'add', 'single', 2, NULL, NULL, 0.005783212971409994, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1, 4096, 4096, 1542, 1764436165, '7501bbc16ad6c6f1f68b304a81a64133', '{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"o","read":"x_attn","form":{"name":"softmax_memory","width":2,"widened":0,"heads":"single","reparameterization":null,"robust":false},"gate":{"name":"add"}}]}', '{"placement":"attention","attention.form":"softmax_memory","attention.softmax_memory.write":"o","attention.softmax_memory.o.read":"x_attn","attention.softmax_memory.gate":"add","learning_rate.softmax_memory":0.005783212971409994}', '2026-11-22 11:59:44.275906+00', '2026-11-22 11:59:45.07569+00'),
	(11, 1, 10, 'running', NULL, NULL, 0, NULL, 1, 'proposed', NULL, 'learned-scale sequential softmax memory of 1 at k + sequential low-rank map of 1 at the residual sum', 'softmax_memory', 'k', 'sequential', 'scale_learned', 'single', 1, NULL, NULL, 0.04428976828135761, 'lowrank', 'sum', 'sequential', 'add', 'single', 1, NULL, NULL, 0.0037699974904835524, 0.5004878048780488, 4100, 4100, 1542, 2035657662, '27a0d5b80b6373b34943e478f55b2128', '{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"k","read":"k","form":{"name":"softmax_memory","width":1,"widened":0,"heads":"single","reparameterization":null,"robust":false},"gate":{"name":"scale_learned","per":"sublayer"}},{"site":"ffn","layers":{"name":"all"},"write":"sum","read":"sum","form":{"name":"lowrank","width":1,"widened":0,"heads":"single","bias":false},"gate":{"name":"add"}}]}', '{"placement":"both","attention.form":"softmax_memory","attention.softmax_memory.write":"k","attention.softmax_memory.k.read":"k","attention.softmax_memory.gate":"scale_learned","ffn.form":"lowrank","ffn.lowrank.write":"sum","ffn.lowrank.gate":"add","attention_share":0.3565993607215342,"learning_rate.softmax_memory":0.04428976828135761,"learning_rate.lowrank":0.0037699974904835524}', '2026-11-22 11:59:45.155605+00', NULL);
SELECT pg_catalog.setval('public.artefacts_id_seq', 5, true);
SELECT pg_catalog.setval('public.events_id_seq', 1, true);
SELECT pg_catalog.setval('public.studies_id_seq', 1, true);
SELECT pg_catalog.setval('public.trials_id_seq', 11, true);
ALTER TABLE ONLY public.artefacts
    ADD CONSTRAINT pk_artefacts PRIMARY KEY (id);
ALTER TABLE ONLY public.attempts
    ADD CONSTRAINT pk_attempts PRIMARY KEY (trial_id, attempt);
ALTER TABLE ONLY public.deltaspace_schema
    ADD CONSTRAINT pk_deltaspace_schema PRIMARY KEY (version);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT pk_events PRIMARY KEY (id);
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
ALTER TABLE ONLY public.events
    ADD CONSTRAINT fk_events_study_id_studies FOREIGN KEY (study_id) REFERENCES public.studies(id);
ALTER TABLE ONLY public.readings
    ADD CONSTRAINT fk_readings_trial_id_attempt_attempts FOREIGN KEY (trial_id, attempt) REFERENCES public.attempts(trial_id, attempt);
ALTER TABLE ONLY public.studies
    ADD CONSTRAINT fk_studies_parent_id_studies FOREIGN KEY (parent_id) REFERENCES public.studies(id);
ALTER TABLE ONLY public.trials
    ADD CONSTRAINT fk_trials_study_id_studies FOREIGN KEY (study_id) REFERENCES public.studies(id);
