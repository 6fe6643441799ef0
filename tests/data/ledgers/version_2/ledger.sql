BEGIN TRANSACTION;
CREATE TABLE artefacts (
	id INTEGER NOT NULL, 
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
INSERT INTO "artefacts" VALUES(4,1,'delta',8,'@ARTEFACTS@/middle/trial-0/attempt-1/step-000008.safetensors','1cf6d2c45b1b15b51543f8135fabd2d285005c925f4668aa1c071de2b478df71',77064);
INSERT INTO "artefacts" VALUES(5,9,'snapshot',2,'@ARTEFACTS@/middle/trial-8/attempt-1/step-000002.safetensors','3eb63bedb33f5643dfde78626255df16de08935b2c76ef192e300a078df977ba',33864);
INSERT INTO "artefacts" VALUES(10,12,'delta',8,'@ARTEFACTS@/finished/trial-0/attempt-1/step-000008.safetensors','e8acad96f111139cb4493b0599ea96bd0d017389da991fcd27f4149aa9dec103',77064);
INSERT INTO "artefacts" VALUES(11,13,'delta',8,'@ARTEFACTS@/finished/trial-1/attempt-1/step-000008.safetensors','afab0df6300077ce992333505151686a14fb1f2f1d46c7c4606f0234079cf3fd',48400);
INSERT INTO "artefacts" VALUES(12,19,'delta',8,'@ARTEFACTS@/finished/trial-7/attempt-1/step-000008.safetensors','1de64c4fd51a93fea35d712e1b40fabca840ba15ae058b91b5a45b21d7e47c2c',76920);
INSERT INTO "artefacts" VALUES(13,20,'delta',8,'@ARTEFACTS@/finished-confirm/trial-0/attempt-1/step-000008.safetensors','c89baedd93c8c805430cfe10501d28f05d29622fb1062f929fc279591a7ee40e',76920);
INSERT INTO "artefacts" VALUES(14,21,'delta',8,'@ARTEFACTS@/finished-confirm/trial-1/attempt-1/step-000008.safetensors','b5c99f1e968665cd546014c814e19f8552f4d3e213a521d39fd409f794aaa5a3',76920);
INSERT INTO "artefacts" VALUES(15,22,'delta',8,'@ARTEFACTS@/finished-confirm/trial-2/attempt-1/step-000008.safetensors','f5a19bc4733a95950bf5d082de0d132036d2abbee276f6325c0d1f3a736d4e70',77064);
INSERT INTO "artefacts" VALUES(16,23,'delta',8,'@ARTEFACTS@/finished-confirm/trial-3/attempt-1/step-000008.safetensors','ef3baf0b7be549413ece3f0c0b38b9c1f98bc466bd8c8019ff6be39e0da9a0ba',77064);
CREATE TABLE attempts (
	trial_id INTEGER NOT NULL, 
	attempt INTEGER NOT NULL, 
	worker TEXT NOT NULL, 
	lease_expires_at VARCHAR(32) NOT NULL, 
	started_at VARCHAR(32) NOT NULL, 
	ended_at VARCHAR(32), 
	ending TEXT, 
	CONSTRAINT pk_attempts PRIMARY KEY (trial_id, attempt), 
	CONSTRAINT ck_attempts_attempt CHECK (attempt >= 1), 
	CONSTRAINT ck_attempts_ending CHECK (ending IN ('complete', 'pruned', 'failed', 'lost')), 
	CONSTRAINT ck_attempts_ended_exactly_with_ending CHECK ((ending IS NULL) = (ended_at IS NULL)), 
	CONSTRAINT fk_attempts_trial_id_trials FOREIGN KEY(trial_id) REFERENCES trials (id)
);
INSERT INTO "attempts" VALUES(1,1,'inline/dfa9398e','2026-11-21T22:21:56.117168+00:00','2026-11-21T22:20:56.117168+00:00','2026-11-21T22:21:01.739712+00:00','complete');
INSERT INTO "attempts" VALUES(2,1,'inline/dfa9398e','2026-11-21T22:21:56.117168+00:00','2026-11-21T22:20:56.117168+00:00','2026-11-21T22:20:58.221837+00:00','pruned');
INSERT INTO "attempts" VALUES(3,1,'inline/dfa9398e','2026-11-21T22:21:58.225275+00:00','2026-11-21T22:20:58.225275+00:00','2026-11-21T22:20:59.174997+00:00','pruned');
INSERT INTO "attempts" VALUES(4,1,'inline/dfa9398e','2026-11-21T22:21:59.177367+00:00','2026-11-21T22:20:59.177367+00:00','2026-11-21T22:21:01.740965+00:00','pruned');
INSERT INTO "attempts" VALUES(5,1,'inline/dfa9398e','2026-11-21T22:22:01.744285+00:00','2026-11-21T22:21:01.744285+00:00','2026-11-21T22:21:04.470830+00:00','pruned');
INSERT INTO "attempts" VALUES(6,1,'inline/dfa9398e','2026-11-21T22:22:01.744285+00:00','2026-11-21T22:21:01.744285+00:00','2026-11-21T22:21:04.471960+00:00','pruned');
INSERT INTO "attempts" VALUES(7,1,'inline/dfa9398e','2026-11-21T22:22:04.475075+00:00','2026-11-21T22:21:04.475075+00:00','2026-11-21T22:21:05.518696+00:00','pruned');
INSERT INTO "attempts" VALUES(8,1,'inline/dfa9398e','2026-11-21T22:22:04.475075+00:00','2026-11-21T22:21:04.475075+00:00','2026-11-21T22:21:05.519791+00:00','pruned');
INSERT INTO "attempts" VALUES(9,1,'inline/dfa9398e','2026-11-21T22:22:05.522627+00:00','2026-11-21T22:21:05.522627+00:00',NULL,NULL);
INSERT INTO "attempts" VALUES(10,1,'inline/dfa9398e','2026-11-21T22:22:05.522627+00:00','2026-11-21T22:21:05.522627+00:00','2026-11-21T22:21:07.102999+00:00','pruned');
INSERT INTO "attempts" VALUES(11,1,'inline/dfa9398e','2026-11-21T22:22:07.105576+00:00','2026-11-21T22:21:07.105576+00:00',NULL,NULL);
INSERT INTO "attempts" VALUES(12,1,'inline/95a7b330','2026-11-21T22:22:10.521112+00:00','2026-11-21T22:21:10.521112+00:00','2026-11-21T22:21:19.836877+00:00','complete');
INSERT INTO "attempts" VALUES(13,1,'inline/95a7b330','2026-11-21T22:22:10.521112+00:00','2026-11-21T22:21:10.521112+00:00','2026-11-21T22:21:19.851155+00:00','complete');
INSERT INTO "attempts" VALUES(14,1,'inline/95a7b330','2026-11-21T22:22:19.861624+00:00','2026-11-21T22:21:19.861624+00:00','2026-11-21T22:21:20.597497+00:00','pruned');
INSERT INTO "attempts" VALUES(15,1,'inline/95a7b330','2026-11-21T22:22:19.861624+00:00','2026-11-21T22:21:19.861624+00:00','2026-11-21T22:21:20.598560+00:00','pruned');
INSERT INTO "attempts" VALUES(16,1,'inline/95a7b330','2026-11-21T22:22:20.602013+00:00','2026-11-21T22:21:20.602013+00:00','2026-11-21T22:21:22.912326+00:00','pruned');
INSERT INTO "attempts" VALUES(17,1,'inline/95a7b330','2026-11-21T22:22:20.602013+00:00','2026-11-21T22:21:20.602013+00:00','2026-11-21T22:21:21.706528+00:00','pruned');
INSERT INTO "attempts" VALUES(18,1,'inline/95a7b330','2026-11-21T22:22:21.708362+00:00','2026-11-21T22:21:21.708362+00:00','2026-11-21T22:21:24.184231+00:00','pruned');
INSERT INTO "attempts" VALUES(19,1,'inline/95a7b330','2026-11-21T22:22:22.922571+00:00','2026-11-21T22:21:22.922571+00:00','2026-11-21T22:21:25.612398+00:00','complete');
INSERT INTO "attempts" VALUES(20,1,'inline/87e30fea','2026-11-21T22:22:25.849085+00:00','2026-11-21T22:21:25.849085+00:00','2026-11-21T22:21:37.817409+00:00','complete');
INSERT INTO "attempts" VALUES(21,1,'inline/87e30fea','2026-11-21T22:22:25.849618+00:00','2026-11-21T22:21:25.849618+00:00','2026-11-21T22:21:37.820001+00:00','complete');
INSERT INTO "attempts" VALUES(22,1,'inline/87e30fea','2026-11-21T22:22:56.342301+00:00','2026-11-21T22:21:37.820664+00:00','2026-11-21T22:21:56.343679+00:00','complete');
INSERT INTO "attempts" VALUES(23,1,'inline/87e30fea','2026-11-21T22:22:56.342301+00:00','2026-11-21T22:21:37.823853+00:00','2026-11-21T22:21:56.344749+00:00','complete');
CREATE TABLE deltaspace_schema (
	version INTEGER NOT NULL, 
	applied_at VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_deltaspace_schema PRIMARY KEY (version)
);
INSERT INTO "deltaspace_schema" VALUES(1,'2026-11-21T22:20:54.773348+00:00');
INSERT INTO "deltaspace_schema" VALUES(2,'2026-11-21T22:20:54.773348+00:00');
CREATE TABLE events (
	id INTEGER NOT NULL, 
	study_id INTEGER NOT NULL, 
	at VARCHAR(32) NOT NULL, 
	kind TEXT NOT NULL, 
	trial INTEGER, 
	text TEXT NOT NULL, 
	CONSTRAINT pk_events PRIMARY KEY (id), 
	CONSTRAINT fk_events_study_id_studies FOREIGN KEY(study_id) REFERENCES studies (id)
);
INSERT INTO "events" VALUES(1,1,'2026-11-21T22:20:56.107290+00:00','takeover',NULL,'keeper 1 is inline 22023');
INSERT INTO "events" VALUES(2,2,'2026-11-21T22:21:10.511108+00:00','takeover',NULL,'keeper 1 is inline 22159');
INSERT INTO "events" VALUES(3,2,'2026-11-21T22:21:25.624167+00:00','launch',NULL,'finished: all 8 trials have ended');
INSERT INTO "events" VALUES(4,3,'2026-11-21T22:21:25.845000+00:00','takeover',NULL,'keeper 1 is inline 22159');
INSERT INTO "events" VALUES(5,3,'2026-11-21T22:21:56.346521+00:00','launch',NULL,'finished: all 4 trials have ended');
CREATE TABLE readings (
	trial_id INTEGER NOT NULL, 
	step INTEGER NOT NULL, 
	attempt INTEGER NOT NULL, 
	score DOUBLE NOT NULL, 
	metrics JSON NOT NULL, 
	train_loss DOUBLE NOT NULL, 
	seconds DOUBLE NOT NULL, 
	rung INTEGER, 
	CONSTRAINT pk_readings PRIMARY KEY (trial_id, step), 
	CONSTRAINT fk_readings_trial_id_attempt_attempts FOREIGN KEY(trial_id, attempt) REFERENCES attempts (trial_id, attempt), 
	CONSTRAINT ck_readings_step CHECK (step >= 1), 
	CONSTRAINT ck_readings_rung CHECK (rung >= 0), 
	CONSTRAINT ck_readings_score_is_finite CHECK (score BETWEEN -1e308 AND 1e308), 
	CONSTRAINT ck_readings_train_loss_is_finite CHECK (train_loss BETWEEN -1e308 AND 1e308), 
	CONSTRAINT ck_readings_seconds CHECK (seconds BETWEEN 0 AND 1e308)
)
 WITHOUT ROWID

;
INSERT INTO "readings" VALUES(1,2,1,0.175,'{"accuracy":0.175,"f1":0.07564102564102564,"matthews":0.0529875653714895,"validation_loss":1.787633517384529}',1.8192303776741027832e+00,1.03315301400004955212e+00,0);
INSERT INTO "readings" VALUES(1,4,1,0.25,'{"accuracy":0.25,"f1":0.12626262626262627,"matthews":0.10337614649108637,"validation_loss":1.7802436619997024}',1.90741187334060668945e+00,4.69831875500062778883e-01,1);
INSERT INTO "readings" VALUES(1,8,1,0.125,'{"accuracy":0.125,"f1":0.05675954592363261,"matthews":-0.05588479132508269,"validation_loss":1.7848345071077347}',1.80589306354522705078e+00,1.01208736949979538621e+00,NULL);
INSERT INTO "readings" VALUES(2,2,1,0.1,'{"accuracy":0.1,"f1":0.03333333333333333,"matthews":-0.10054050865359547,"validation_loss":1.8373415768146515}',1.82123553752899169921e+00,1.03315358949998881143e+00,0);
INSERT INTO "readings" VALUES(3,2,1,0.15,'{"accuracy":0.15,"f1":0.06190476190476191,"matthews":0.03542212513629572,"validation_loss":1.8950501948595047}',1.90485233068466186523e+00,4.69832536500007336144e-01,0);
INSERT INTO "readings" VALUES(4,2,1,0.225,'{"accuracy":0.225,"f1":0.10918114143920594,"matthews":0.06382980226803926,"validation_loss":1.7684357821941377}',1.87373119592666625976e+00,4.70327439499783395149e-01,0);
INSERT INTO "readings" VALUES(4,4,1,0.175,'{"accuracy":0.175,"f1":0.08231707317073171,"matthews":0.08511470514282515,"validation_loss":1.8637774646282197}',1.63404160737991333007e+00,1.06356485300000258575e+00,1);
INSERT INTO "readings" VALUES(5,2,1,0.175,'{"accuracy":0.175,"f1":0.09307359307359307,"matthews":0.09462916232627815,"validation_loss":1.845337337255478}',1.81602215766906738281e+00,1.35881699649985421274e+00,0);
INSERT INTO "readings" VALUES(6,2,1,0.125,'{"accuracy":0.125,"f1":0.037037037037037035,"matthews":0.0,"validation_loss":1.8975389629602433}',1.75267261266708374023e+00,1.35881743249990449839e+00,0);
INSERT INTO "readings" VALUES(7,2,1,0.125,'{"accuracy":0.125,"f1":0.03875968992248062,"matthews":-0.0022383971222927233,"validation_loss":1.8258231818675994}',1.8890018463134765625e+00,5.17604539999865664867e-01,0);
INSERT INTO "readings" VALUES(8,2,1,0.1,'{"accuracy":0.1,"f1":0.031007751937984496,"matthews":-0.09462916232627815,"validation_loss":1.8340028554201127}',1.89839106798172,5.17604960499852495559e-01,0);
INSERT INTO "readings" VALUES(9,2,1,0.25,'{"accuracy":0.25,"f1":0.11679454390451834,"matthews":0.0280288625257464,"validation_loss":1.7935461044311523}',1.81330001354217529296e+00,7.85790829999996276455e-01,0);
INSERT INTO "readings" VALUES(10,2,1,0.15,'{"accuracy":0.15,"f1":0.08465608465608465,"matthews":0.03710150538354143,"validation_loss":1.816413450241089}',1.86207693815231323242e+00,0.785791235500028,0);
INSERT INTO "readings" VALUES(12,2,1,0.125,'{"accuracy":0.125,"f1":0.03875968992248062,"matthews":0.0,"validation_loss":1.8224837839603425}',1.8362293243408203125e+00,2.16152108150004096387e+00,0);
INSERT INTO "readings" VALUES(12,4,1,0.125,'{"accuracy":0.125,"f1":0.037037037037037035,"matthews":0.0,"validation_loss":1.8285634517669678}',1.8344948887825012207e+00,1.08180023050022100505e+00,1);
INSERT INTO "readings" VALUES(12,8,1,0.125,'{"accuracy":0.125,"f1":0.037037037037037035,"matthews":0.0,"validation_loss":1.8424246519804002}',1.73563233017921447753e+00,1.3824095330001,NULL);
INSERT INTO "readings" VALUES(13,2,1,0.2,'{"accuracy":0.2,"f1":0.12254901960784313,"matthews":0.015186418480769676,"validation_loss":1.7997073203325271}',1.78838062286376953125e+00,2.16152164700008597719e+00,0);
INSERT INTO "readings" VALUES(13,4,1,0.225,'{"accuracy":0.225,"f1":0.11167945439045183,"matthews":0.09127781853414771,"validation_loss":1.825103160738945}',1.82087075710296630859e+00,1.08180077150018405518e+00,1);
INSERT INTO "readings" VALUES(13,8,1,0.125,'{"accuracy":0.125,"f1":0.037037037037037035,"matthews":0.0,"validation_loss":1.8520456224679946}',1.74333351850509643554e+00,1.38241000900018207175e+00,NULL);
INSERT INTO "readings" VALUES(14,2,1,0.125,'{"accuracy":0.125,"f1":0.04065040650406504,"matthews":-0.004860098695998369,"validation_loss":1.8510455995798112}',1.8218008279800415039e+00,3.62357522999900538707e-01,0);
INSERT INTO "readings" VALUES(15,2,1,0.125,'{"accuracy":0.125,"f1":0.037037037037037035,"matthews":0.0,"validation_loss":1.8879540026187898}',1.8313452005386352539e+00,3.62357913499977257743e-01,0);
INSERT INTO "readings" VALUES(16,2,1,0.225,'{"accuracy":0.225,"f1":0.1368823368823369,"matthews":0.12309149097933272,"validation_loss":1.8061202943325043}',1.81427407264709472656e+00,5.47080548999929305864e-01,0);
INSERT INTO "readings" VALUES(16,4,1,0.2,'{"accuracy":0.2,"f1":0.09012345679012346,"matthews":-0.005922242120989179,"validation_loss":1.8051038444042207}',1.85406249761581420898e+00,5.89002569499939454544e-01,1);
INSERT INTO "readings" VALUES(17,2,1,0.1,'{"accuracy":0.1,"f1":0.034188034188034185,"matthews":-0.06385680955025658,"validation_loss":1.8251853495836259}',1.83314013481140136718e+00,5.47080929499998092069e-01,0);
INSERT INTO "readings" VALUES(18,2,1,0.15,'{"accuracy":0.15,"f1":0.07416267942583732,"matthews":0.04975914798558441,"validation_loss":1.8390098541975022}',1.8666171431541442871e+00,5.89002940000000307918e-01,0);
INSERT INTO "readings" VALUES(18,4,1,0.15,'{"accuracy":0.15,"f1":0.11484593837535013,"matthews":0.0054476704205051124,"validation_loss":1.8266105741262435}',1.82339733839035034179e+00,6.2051428300003408367e-01,1);
INSERT INTO "readings" VALUES(19,2,1,0.275,'{"accuracy":0.275,"f1":0.13383838383838384,"matthews":0.16716196245893292,"validation_loss":1.7758160322904586}',1.8565552830696105957e+00,6.20513882499949431803e-01,0);
INSERT INTO "readings" VALUES(19,4,1,0.275,'{"accuracy":0.275,"f1":0.16210355109785848,"matthews":0.0933388185462251,"validation_loss":1.814284583926201}',1.87220144271850585937e+00,5.57126603999904546071e-01,1);
INSERT INTO "readings" VALUES(19,8,1,0.225,'{"accuracy":0.225,"f1":0.11171171171171172,"matthews":0.12767205771423776,"validation_loss":1.8266758114099502}',1.78616678714752197265e+00,0.814394651999919,NULL);
INSERT INTO "readings" VALUES(20,8,1,1.66666666666666657414e-01,'{"accuracy":0.16666666666666666,"f1":0.047619047619047616,"matthews":0.0,"validation_loss":1.8556426587104797}',1.8519305884838104248e+00,5.96826231450018,NULL);
INSERT INTO "readings" VALUES(21,8,1,1.62666666666666653862e-01,'{"accuracy":0.16266666666666665,"f1":0.08718154839956145,"matthews":-0.0068678782192017705,"validation_loss":1.8166393831570944}',1.85532456636428833007e+00,5.96826285500014819263e+00,NULL);
INSERT INTO "readings" VALUES(22,8,1,1.66666666666666657414e-01,'{"accuracy":0.16666666666666666,"f1":0.05229439543793995,"matthews":0.0,"validation_loss":1.837264706293742}',1.84120883047580718994e+00,9.24467607199983376631e+00,NULL);
INSERT INTO "readings" VALUES(23,8,1,1.69333333333333335701e-01,'{"accuracy":0.16933333333333334,"f1":0.07287627838486131,"matthews":0.006869716129873472,"validation_loss":1.8111670385996501}',1.84693022072315216064e+00,9.24467658799983382778e+00,NULL);
CREATE TABLE studies (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	specification JSON NOT NULL, 
	backbone TEXT NOT NULL, 
	backbone_parameters BIGINT NOT NULL, 
	budget_parameters BIGINT NOT NULL, 
	metric TEXT NOT NULL, 
	seed BIGINT NOT NULL, 
	epoch INTEGER NOT NULL, 
	created_at VARCHAR(32) NOT NULL, 
	kind TEXT DEFAULT 'search' NOT NULL, 
	parent_id INTEGER, 
	CONSTRAINT pk_studies PRIMARY KEY (id), 
	CONSTRAINT ck_studies_epoch CHECK (epoch >= 0), 
	CONSTRAINT ck_studies_parameters CHECK (backbone_parameters > 0 AND budget_parameters > 0), 
	CONSTRAINT ck_studies_kind CHECK (kind IN ('search', 'confirmation')), 
	CONSTRAINT ck_studies_parent_exactly_of_confirmations CHECK ((kind = 'confirmation') = (parent_id IS NOT NULL)), 
	CONSTRAINT uq_studies_name UNIQUE (name), 
	CONSTRAINT fk_studies_parent_id_studies FOREIGN KEY(parent_id) REFERENCES studies (id)
);
INSERT INTO "studies" VALUES(1,'middle','{"name":"middle","backbone":"embedded","task":{"preset":null,"kind":"classification","name":"docstrings","folder":null,"hub":null,"configuration":null,"revision":null,"text":null,"label":null,"labels":null,"source":null,"target":null,"references":null,"context":null,"question":null,"answers":null,"group":null,"groups":{},"instruction":null,"languages":null,"splits":{},"metric":"accuracy","metrics":[],"early_metric":"loss","max_tokens":16,"max_target_tokens":64,"label_smoothing":0.0,"decoding":{"beams":1,"max_new_tokens":null,"min_new_tokens":0,"length_penalty":1.0,"no_repeat_ngram":0},"train_examples":96,"validation_examples":40},"budget":4500,"trials":12,"seed":5,"training":{"steps":8,"batch_size":8,"head_learning_rate":0.005,"warmup_fraction":0.06,"weight_decay":0.0,"betas":[0.9,0.999],"clip_norm":1.0,"precision":"fp32"},"pruning":{"first_rung_steps":2,"reduction":2,"protect_published":true},"search":{"sampler":"tpe","published":["lora_qv"],"published_scale":2.0,"attention_forms":["softmax_memory","bottleneck","lowrank","diag","const"],"ffn_forms":["bottleneck","lowrank","softmax_memory","diag","const"],"sites":"tied","layers":["all"],"activations":["relu","gelu","silu","tanh"],"gates":["add","scale","scale_learned","lse_convex","inducer"],"scales":[2.0,4.0],"scale_per":["sublayer"],"key_widths":[null,4],"norms":["none"],"biases":["usual"],"inits":["lora"],"reparameterizations":[null],"products":[4],"factors":[1],"sharing":["shared"],"near_duplicates":false,"attention_share":[0.05,0.95],"learning_rates":{"softmax_memory":[0.003,0.05],"bottleneck":[0.001,0.01],"lowrank":[0.001,0.02],"phm":[0.001,0.02],"diag":[0.003,0.05],"const":[0.001,0.01],"prompt":[0.01,0.3],"encoded_prompt":[0.0003,0.01],"full":[1e-05,0.0005],"sparse":[1e-05,0.0005],"intrinsic":[0.001,0.1]}},"fleet":{"backend":"inline","workers":"auto","pack":2,"time_budget":null,"artefacts":"@ARTEFACTS@"}}','embedded',5454336,4500,'accuracy',5,1,'2026-11-21T22:20:54.775291+00:00','search',NULL);
INSERT INTO "studies" VALUES(2,'finished','{"name":"finished","backbone":"embedded","task":{"preset":null,"kind":"classification","name":"docstrings","folder":null,"hub":null,"configuration":null,"revision":null,"text":null,"label":null,"labels":null,"source":null,"target":null,"references":null,"context":null,"question":null,"answers":null,"group":null,"groups":{},"instruction":null,"languages":null,"splits":{},"metric":"accuracy","metrics":[],"early_metric":"loss","max_tokens":16,"max_target_tokens":64,"label_smoothing":0.0,"decoding":{"beams":1,"max_new_tokens":null,"min_new_tokens":0,"length_penalty":1.0,"no_repeat_ngram":0},"train_examples":96,"validation_examples":40},"budget":4500,"trials":8,"seed":6,"training":{"steps":8,"batch_size":8,"head_learning_rate":0.005,"warmup_fraction":0.06,"weight_decay":0.0,"betas":[0.9,0.999],"clip_norm":1.0,"precision":"fp32"},"pruning":{"first_rung_steps":2,"reduction":2,"protect_published":true},"search":{"sampler":"random","published":["lora_qv"],"published_scale":2.0,"attention_forms":["softmax_memory","bottleneck","lowrank","diag","const"],"ffn_forms":["bottleneck","lowrank","softmax_memory","diag","const"],"sites":"tied","layers":["all"],"activations":["relu","gelu","silu","tanh"],"gates":["add","scale","scale_learned","lse_convex","inducer"],"scales":[2.0,4.0],"scale_per":["sublayer"],"key_widths":[null,4],"norms":["none"],"biases":["usual"],"inits":["lora"],"reparameterizations":[null],"products":[4],"factors":[1],"sharing":["shared"],"near_duplicates":false,"attention_share":[0.05,0.95],"learning_rates":{"softmax_memory":[0.003,0.05],"bottleneck":[0.001,0.01],"lowrank":[0.001,0.02],"phm":[0.001,0.02],"diag":[0.003,0.05],"const":[0.001,0.01],"prompt":[0.01,0.3],"encoded_prompt":[0.0003,0.01],"full":[1e-05,0.0005],"sparse":[1e-05,0.0005],"intrinsic":[0.001,0.1]}},"fleet":{"backend":"inline","workers":"auto","pack":2,"time_budget":null,"artefacts":"@ARTEFACTS@"}}','embedded',5454336,4500,'accuracy',6,1,'2026-11-21T22:21:08.985698+00:00','search',NULL);
INSERT INTO "studies" VALUES(3,'finished-confirm','{"name":"finished-confirm","backbone":"embedded","task":{"preset":null,"kind":"classification","name":"docstrings","folder":null,"hub":null,"configuration":null,"revision":null,"text":null,"label":null,"labels":null,"source":null,"target":null,"references":null,"context":null,"question":null,"answers":null,"group":null,"groups":{},"instruction":null,"languages":null,"splits":{},"metric":"accuracy","metrics":[],"early_metric":"loss","max_tokens":16,"max_target_tokens":64,"label_smoothing":0.0,"decoding":{"beams":1,"max_new_tokens":null,"min_new_tokens":0,"length_penalty":1.0,"no_repeat_ngram":0},"train_examples":96,"validation_examples":40},"budget":4500,"trials":4,"seed":6,"training":{"steps":8,"batch_size":8,"head_learning_rate":0.005,"warmup_fraction":0.06,"weight_decay":0.0,"betas":[0.9,0.999],"clip_norm":1.0,"precision":"fp32"},"pruning":{"first_rung_steps":2,"reduction":2,"protect_published":true},"search":{"sampler":"random","published":["lora_qv"],"published_scale":2.0,"attention_forms":["softmax_memory","bottleneck","lowrank","diag","const"],"ffn_forms":["bottleneck","lowrank","softmax_memory","diag","const"],"sites":"tied","layers":["all"],"activations":["relu","gelu","silu","tanh"],"gates":["add","scale","scale_learned","lse_convex","inducer"],"scales":[2.0,4.0],"scale_per":["sublayer"],"key_widths":[null,4],"norms":["none"],"biases":["usual"],"inits":["lora"],"reparameterizations":[null],"products":[4],"factors":[1],"sharing":["shared"],"near_duplicates":false,"attention_share":[0.05,0.95],"learning_rates":{"softmax_memory":[0.003,0.05],"bottleneck":[0.001,0.01],"lowrank":[0.001,0.02],"phm":[0.001,0.02],"diag":[0.003,0.05],"const":[0.001,0.01],"prompt":[0.01,0.3],"encoded_prompt":[0.0003,0.01],"full":[1e-05,0.0005],"sparse":[1e-05,0.0005],"intrinsic":[0.001,0.1]}},"fleet":{"backend":"inline","workers":"auto","pack":2,"time_budget":null,"artefacts":"@ARTEFACTS@"},"confirmation":{"study":"finished","top":1,"against":["lora_qv"],"seeds":[781100419,701958913],"contenders":[{"label":"trial 7","trial":7,"validation_score":0.225,"is_top":true,"baselines":[]},{"label":"lora_qv","trial":0,"validation_score":0.125,"is_top":false,"baselines":["lora_qv"]}],"left_out":{}}}','embedded',5454336,4500,'accuracy',6,1,'2026-11-21T22:21:25.780177+00:00','confirmation',2);
CREATE TABLE trials (
	id INTEGER NOT NULL, 
	study_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	state TEXT NOT NULL, 
	score DOUBLE, 
	reason TEXT, 
	steps INTEGER NOT NULL, 
	last_score DOUBLE, 
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
	attention_scale DOUBLE, 
	attention_learning_rate DOUBLE, 
	ffn_form TEXT, 
	ffn_write TEXT, 
	ffn_insertion TEXT, 
	ffn_gate TEXT, 
	ffn_heads TEXT, 
	ffn_bottleneck INTEGER, 
	ffn_activation TEXT, 
	ffn_scale DOUBLE, 
	ffn_learning_rate DOUBLE, 
	attention_share DOUBLE NOT NULL, 
	stored_parameters BIGINT NOT NULL, 
	trained_parameters BIGINT NOT NULL, 
	head_parameters BIGINT NOT NULL, 
	seed BIGINT NOT NULL, 
	fingerprint TEXT NOT NULL, 
	configuration JSON NOT NULL, 
	proposal JSON NOT NULL, 
	created_at VARCHAR(32) NOT NULL, 
	ended_at VARCHAR(32), 
	CONSTRAINT pk_trials PRIMARY KEY (id), 
	CONSTRAINT uq_trials_study_id_number UNIQUE (study_id, number), 
	CONSTRAINT uq_trials_study_id_fingerprint UNIQUE (study_id, fingerprint), 
	CONSTRAINT ck_trials_number CHECK (number >= 0), 
	CONSTRAINT ck_trials_state CHECK (state IN ('queued', 'running', 'complete', 'pruned', 'failed')), 
	CONSTRAINT ck_trials_origin CHECK (origin IN ('published', 'proposed')), 
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
	CONSTRAINT fk_trials_study_id_studies FOREIGN KEY(study_id) REFERENCES studies (id)
);
INSERT INTO "trials" VALUES(1,1,0,'complete',0.125,NULL,8,0.125,1,'published','lora_qv','scaled LoRA of 1 at q, v (LoRA on q, v)','lowrank','q+v','parallel','scale','single',1,NULL,2.0,1.12730083893959652854e-03,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1.0,4096,4096,1542,2034869288,'8b1140b882ce9d4cded5214cd7f4590b','{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"q","read":"x_attn","form":{"name":"lowrank","width":1,"widened":0,"heads":"single","bias":false},"gate":{"name":"scale","value":2.0}},{"site":"attn","layers":{"name":"all"},"write":"v","read":"ctx","form":{"name":"lowrank","width":1,"widened":0,"heads":"single","bias":false},"gate":{"name":"scale","value":2.0}}]}','{"learning_rate.lowrank":0.0011273008389395965}','2026-11-21T22:20:56.117168+00:00','2026-11-21T22:21:01.739712+00:00');
INSERT INTO "trials" VALUES(2,1,1,'pruned',NULL,'rung 0 (2 steps): 0.1 below the cut 0.175',2,0.1,1,'proposed',NULL,'learned-scale parallel low-rank map of 2 at the FFN',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'lowrank','f','parallel','scale_learned','single',2,NULL,NULL,1.63641538212135843194e-03,0.0,4100,4100,1542,396060440,'726c65568fed31a5b44bc6d76eeffe08','{"schema_version":2,"edits":[{"site":"ffn","layers":{"name":"all"},"write":"f","read":"x_ffn","form":{"name":"lowrank","width":2,"widened":0,"heads":"single","bias":false},"gate":{"name":"scale_learned","per":"sublayer"}}]}','{"placement":"ffn","ffn.form":"lowrank","ffn.lowrank.write":"f","ffn.lowrank.f.read":"x_ffn","ffn.lowrank.gate":"scale_learned","learning_rate.lowrank":0.0016364153821213584}','2026-11-21T22:20:56.117168+00:00','2026-11-21T22:20:58.221837+00:00');
INSERT INTO "trials" VALUES(3,1,2,'pruned',NULL,'rung 0 (2 steps): 0.15 below the cut 0.175',2,0.15,1,'proposed',NULL,'bias at q + scaled sequential softmax memory of 1–2 at the residual sum','const','q','sequential','add','single',NULL,NULL,NULL,2.09565627548222339904e-03,'softmax_memory','sum','sequential','scale','single',1,NULL,4.0,2.26042157080013350611e-02,0.25,4096,4096,1542,1656311285,'143727d59073a5c9125c40858e24dc89','{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"q","read":null,"form":{"name":"const"},"gate":{"name":"add"}},{"site":"ffn","layers":{"name":"all"},"write":"sum","read":"sum","form":{"name":"softmax_memory","width":1,"widened":2,"heads":"single","reparameterization":null,"robust":false},"gate":{"name":"scale","value":4.0}}]}','{"placement":"both","attention.form":"const","attention.const.write":"q","ffn.form":"softmax_memory","ffn.softmax_memory.write":"sum","ffn.softmax_memory.gate":"scale","ffn.scale":"4.0","learning_rate.const":0.0020956562754822234,"learning_rate.softmax_memory":0.022604215708001335}','2026-11-21T22:20:58.225275+00:00','2026-11-21T22:20:59.174997+00:00');
INSERT INTO "trials" VALUES(4,1,3,'pruned',NULL,'rung 1 (4 steps): 0.175 below the cut 0.25',4,0.175,1,'proposed',NULL,'sequential softmax memory of 2 at the residual sum',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'softmax_memory','sum','sequential','add','single',2,NULL,NULL,1.48639729044821172765e-02,0.0,4096,4096,1542,1034300484,'99cd25c63dc3060254c703fb30b54ca3','{"schema_version":2,"edits":[{"site":"ffn","layers":{"name":"all"},"write":"sum","read":"sum","form":{"name":"softmax_memory","width":2,"widened":0,"heads":"single","reparameterization":null,"robust":false},"gate":{"name":"add"}}]}','{"placement":"ffn","ffn.form":"softmax_memory","ffn.softmax_memory.write":"sum","ffn.softmax_memory.gate":"add","learning_rate.softmax_memory":0.014863972904482117}','2026-11-21T22:20:59.177367+00:00','2026-11-21T22:21:01.740965+00:00');
INSERT INTO "trials" VALUES(5,1,4,'pruned',NULL,'rung 0 (2 steps): 0.175 ties the cut, and an earlier trial has it: 0.175',2,0.175,1,'proposed',NULL,'LoRA of 1–2 at v + bias at the FFN','lowrank','v','parallel','add','single',1,NULL,NULL,6.5589902928006923316e-03,'const','f','sequential','add','single',NULL,NULL,NULL,9.72416902634652170756e-03,0.75,4096,4096,1542,902763100,'0d577b2283b1ea268cde082395d5d87f','{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"v","read":"ctx","form":{"name":"lowrank","width":1,"widened":2,"heads":"single","bias":false},"gate":{"name":"add"}},{"site":"ffn","layers":{"name":"all"},"write":"f","read":null,"form":{"name":"const"},"gate":{"name":"add"}}]}','{"placement":"both","attention.form":"lowrank","attention.lowrank.write":"v","attention.lowrank.gate":"add","ffn.form":"const","learning_rate.lowrank":0.006558990292800692,"learning_rate.const":0.009724169026346522}','2026-11-21T22:21:01.744285+00:00','2026-11-21T22:21:04.470830+00:00');
INSERT INTO "trials" VALUES(6,1,5,'pruned',NULL,'rung 0 (2 steps): 0.125 below the cut 0.175',2,0.125,1,'proposed',NULL,'scaling at k, v','diag','k+v','sequential','mul','single',NULL,NULL,NULL,3.31608217893858501362e-03,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1.0,2048,2048,1542,851471095,'70b269b28b3fe6df23faec59978fc5de','{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"k","read":"k","form":{"name":"diag"},"gate":{"name":"mul"}},{"site":"attn","layers":{"name":"all"},"write":"v","read":"v","form":{"name":"diag"},"gate":{"name":"mul"}}]}','{"placement":"attention","attention.form":"diag","attention.diag.write":"k+v","learning_rate.diag":0.003316082178938585}','2026-11-21T22:21:01.744285+00:00','2026-11-21T22:21:04.471960+00:00');
INSERT INTO "trials" VALUES(7,1,6,'pruned',NULL,'rung 0 (2 steps): 0.125 below the cut 0.175',2,0.125,1,'proposed',NULL,'scaled LoRA of 2 at k','lowrank','k','parallel','scale','single',2,NULL,4.0,1.08972464179381300398e-03,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1.0,4096,4096,1542,135052459,'887e1538eace3848e4e0aa879bcbfec8','{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"k","read":"ctx","form":{"name":"lowrank","width":2,"widened":0,"heads":"single","bias":false},"gate":{"name":"scale","value":4.0}}]}','{"placement":"attention","attention.form":"lowrank","attention.lowrank.write":"k","attention.lowrank.gate":"scale","attention.scale":"4.0","learning_rate.lowrank":0.001089724641793813}','2026-11-21T22:21:04.475075+00:00','2026-11-21T22:21:05.518696+00:00');
INSERT INTO "trials" VALUES(8,1,7,'pruned',NULL,'rung 0 (2 steps): 0.1 below the cut 0.15',2,0.1,1,'proposed',NULL,'parallel diagonal at q + bias at the FFN','diag','q','parallel','add','single',NULL,NULL,NULL,6.89287708979390532915e-03,'const','f','sequential','add','single',NULL,NULL,NULL,1.13295566885424732125e-03,0.5,2048,2048,1542,1412250737,'e6b21a4a5d2bcfcaaa80731c3a9d3737','{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"q","read":"x_attn","form":{"name":"diag"},"gate":{"name":"add"}},{"site":"ffn","layers":{"name":"all"},"write":"f","read":null,"form":{"name":"const"},"gate":{"name":"add"}}]}','{"placement":"both","attention.form":"diag","attention.diag.write":"q","attention.diag.q.read":"x_attn","attention.diag.gate":"add","ffn.form":"const","learning_rate.diag":0.006892877089793905,"learning_rate.const":0.0011329556688542473}','2026-11-21T22:21:04.475075+00:00','2026-11-21T22:21:05.519791+00:00');
INSERT INTO "trials" VALUES(9,1,8,'running',NULL,NULL,2,0.25,1,'proposed',NULL,'bias at the FFN',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'const','f','sequential','add','single',NULL,NULL,NULL,1.63916670109902026276e-03,0.0,1024,1024,1542,855797222,'6a82a06b3fcf9c0f191b1993e39d0302','{"schema_version":2,"edits":[{"site":"ffn","layers":{"name":"all"},"write":"f","read":null,"form":{"name":"const"},"gate":{"name":"add"}}]}','{"placement":"ffn","ffn.form":"const","learning_rate.const":0.0016391667010990203}','2026-11-21T22:21:05.522627+00:00',NULL);
INSERT INTO "trials" VALUES(10,1,9,'pruned',NULL,'rung 0 (2 steps): 0.15 ties the cut, and an earlier trial has it: 0.15',2,0.15,1,'proposed',NULL,'parallel softmax memory of 2 at attention''s output','softmax_memory','o','parallel','add','single',2,NULL,NULL,5.78321297140999435876e-03,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1.0,4096,4096,1542,1764436165,'7501bbc16ad6c6f1f68b304a81a64133','{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"o","read":"x_attn","form":{"name":"softmax_memory","width":2,"widened":0,"heads":"single","reparameterization":null,"robust":false},"gate":{"name":"add"}}]}','{"placement":"attention","attention.form":"softmax_memory","attention.softmax_memory.write":"o","attention.softmax_memory.o.read":"x_attn","attention.softmax_memory.gate":"add","learning_rate.softmax_memory":0.005783212971409994}','2026-11-21T22:21:05.522627+00:00','2026-11-21T22:21:07.102999+00:00');
INSERT INTO "trials" VALUES(11,1,10,'running',NULL,NULL,0,NULL,1,'proposed',NULL,'learned-scale sequential softmax memory of 1 at k + sequential low-rank map of 1 at the residual sum','softmax_memory','k','sequential','scale_learned','single',1,NULL,NULL,4.42897682813576110127e-02,'lowrank','sum','sequential','add','single',1,NULL,NULL,3.76999749048355240269e-03,5.00487804878048780921e-01,4100,4100,1542,2035657662,'27a0d5b80b6373b34943e478f55b2128','{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"k","read":"k","form":{"name":"softmax_memory","width":1,"widened":0,"heads":"single","reparameterization":null,"robust":false},"gate":{"name":"scale_learned","per":"sublayer"}},{"site":"ffn","layers":{"name":"all"},"write":"sum","read":"sum","form":{"name":"lowrank","width":1,"widened":0,"heads":"single","bias":false},"gate":{"name":"add"}}]}','{"placement":"both","attention.form":"softmax_memory","attention.softmax_memory.write":"k","attention.softmax_memory.k.read":"k","attention.softmax_memory.gate":"scale_learned","ffn.form":"lowrank","ffn.lowrank.write":"sum","ffn.lowrank.gate":"add","attention_share":0.3565993607215342,"learning_rate.softmax_memory":0.04428976828135761,"learning_rate.lowrank":0.0037699974904835524}','2026-11-21T22:21:07.105576+00:00',NULL);
INSERT INTO "trials" VALUES(12,2,0,'complete',0.125,NULL,8,0.125,1,'published','lora_qv','scaled LoRA of 1 at q, v (LoRA on q, v)','lowrank','q+v','parallel','scale','single',1,NULL,2.0,1.09226745408202326192e-02,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1.0,4096,4096,1542,102949110,'5e40b1916633d02e649f40b0a691100c','{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"q","read":"x_attn","form":{"name":"lowrank","width":1,"widened":0,"heads":"single","bias":false},"gate":{"name":"scale","value":2.0}},{"site":"attn","layers":{"name":"all"},"write":"v","read":"ctx","form":{"name":"lowrank","width":1,"widened":0,"heads":"single","bias":false},"gate":{"name":"scale","value":2.0}}]}','{"learning_rate.lowrank":0.010922674540820233}','2026-11-21T22:21:10.521112+00:00','2026-11-21T22:21:19.836877+00:00');
INSERT INTO "trials" VALUES(13,2,1,'complete',0.125,NULL,8,0.125,1,'proposed',NULL,'scaling at k, v','diag','k+v','sequential','mul','single',NULL,NULL,NULL,1.15021267696852700496e-02,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1.0,2048,2048,1542,57025654,'098f010856e729b4c4e198fba50ba849','{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"k","read":"k","form":{"name":"diag"},"gate":{"name":"mul"}},{"site":"attn","layers":{"name":"all"},"write":"v","read":"v","form":{"name":"diag"},"gate":{"name":"mul"}}]}','{"placement":"attention","attention.form":"diag","attention.diag.write":"k+v","learning_rate.diag":0.01150212676968527}','2026-11-21T22:21:10.521112+00:00','2026-11-21T22:21:19.851155+00:00');
INSERT INTO "trials" VALUES(14,2,2,'pruned',NULL,'rung 0 (2 steps): 0.125 below the cut 0.2',2,0.125,1,'proposed',NULL,'scaling at the FFN',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'diag','f','sequential','mul','single',NULL,NULL,NULL,7.6000623569569642976e-03,0.0,1024,1024,1542,150077159,'6d4aa19f556231aa3afe35eddae5c22c','{"schema_version":2,"edits":[{"site":"ffn","layers":{"name":"all"},"write":"f","read":"f","form":{"name":"diag"},"gate":{"name":"mul"}}]}','{"placement":"ffn","ffn.form":"diag","ffn.diag.write":"f","ffn.diag.f.read":"f","learning_rate.diag":0.007600062356956964}','2026-11-21T22:21:19.861624+00:00','2026-11-21T22:21:20.597497+00:00');
INSERT INTO "trials" VALUES(15,2,3,'pruned',NULL,'rung 0 (2 steps): 0.125 ties the cut, and an earlier trial has it: 0.125',2,0.125,1,'proposed',NULL,'sequential softmax memory of 2 at the FFN',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'softmax_memory','f','sequential','add','single',2,NULL,NULL,1.08355276919839677018e-02,0.0,4096,4096,1542,1286979368,'e1a48efd28dab8e858b81bf665b535ac','{"schema_version":2,"edits":[{"site":"ffn","layers":{"name":"all"},"write":"f","read":"f","form":{"name":"softmax_memory","width":2,"widened":0,"heads":"single","reparameterization":null,"robust":false},"gate":{"name":"add"}}]}','{"placement":"ffn","ffn.form":"softmax_memory","ffn.softmax_memory.write":"f","ffn.softmax_memory.f.read":"f","ffn.softmax_memory.gate":"add","learning_rate.softmax_memory":0.010835527691983968}','2026-11-21T22:21:19.861624+00:00','2026-11-21T22:21:20.598560+00:00');
INSERT INTO "trials" VALUES(16,2,4,'pruned',NULL,'rung 1 (4 steps): 0.2 below the cut 0.225',4,0.2,1,'proposed',NULL,'prefix of 1–2 at the heads + bias at the FFN','softmax_memory','head','parallel','lse_convex','key_value_heads',1,NULL,NULL,4.27016595857388561729e-02,'const','f','sequential','add','single',NULL,NULL,NULL,4.68489994984326238447e-03,0.75,4096,4096,1542,79346101,'bba4d25f0d1253176718e36338291927','{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"head","read":"q","form":{"name":"softmax_memory","width":1,"widened":2,"heads":"key_value_heads","reparameterization":null,"robust":false},"gate":{"name":"lse_convex"}},{"site":"ffn","layers":{"name":"all"},"write":"f","read":null,"form":{"name":"const"},"gate":{"name":"add"}}]}','{"placement":"both","attention.form":"softmax_memory","attention.softmax_memory.write":"head","attention.softmax_memory.head.read":"q","attention.softmax_memory.prefix_gate":"lse_convex","ffn.form":"const","learning_rate.softmax_memory":0.042701659585738856,"learning_rate.const":0.004684899949843262}','2026-11-21T22:21:20.602013+00:00','2026-11-21T22:21:22.912326+00:00');
INSERT INTO "trials" VALUES(17,2,5,'pruned',NULL,'rung 0 (2 steps): 0.1 below the cut 0.125',2,0.1,1,'proposed',NULL,'bias at v + scaled sequential low-rank map of 1–2 at the FFN','const','v','sequential','add','single',NULL,NULL,NULL,5.2228524758015319046e-03,'lowrank','f','sequential','scale','single',1,NULL,4.0,1.23902233299433219178e-03,0.25,4096,4096,1542,734195805,'66ea8db12f1abdfe2c45d9a4ba22c68e','{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"v","read":null,"form":{"name":"const"},"gate":{"name":"add"}},{"site":"ffn","layers":{"name":"all"},"write":"f","read":"f","form":{"name":"lowrank","width":1,"widened":2,"heads":"single","bias":false},"gate":{"name":"scale","value":4.0}}]}','{"placement":"both","attention.form":"const","attention.const.write":"v","ffn.form":"lowrank","ffn.lowrank.write":"f","ffn.lowrank.f.read":"f","ffn.lowrank.gate":"scale","ffn.scale":"4.0","learning_rate.const":0.005222852475801532,"learning_rate.lowrank":0.0012390223329943322}','2026-11-21T22:21:20.602013+00:00','2026-11-21T22:21:21.706528+00:00');
INSERT INTO "trials" VALUES(18,2,6,'pruned',NULL,'rung 1 (4 steps): 0.15 below the cut 0.2',4,0.15,1,'proposed',NULL,'scaling at the residual sum',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'diag','sum','sequential','mul','single',NULL,NULL,NULL,4.71605646022634546893e-03,0.0,1024,1024,1542,1533128399,'b0d956ddfbf9f28bf6e0c6e79b216726','{"schema_version":2,"edits":[{"site":"ffn","layers":{"name":"all"},"write":"sum","read":"sum","form":{"name":"diag"},"gate":{"name":"mul"}}]}','{"placement":"ffn","ffn.form":"diag","ffn.diag.write":"sum","learning_rate.diag":0.0047160564602263455}','2026-11-21T22:21:21.708362+00:00','2026-11-21T22:21:24.184231+00:00');
INSERT INTO "trials" VALUES(19,2,7,'complete',0.225,NULL,8,0.225,1,'proposed',NULL,'bias at attention''s output + learned-scale sequential softmax memory of 1–2 at the residual sum','const','o','sequential','add','single',NULL,NULL,NULL,1.27756577516317825805e-03,'softmax_memory','sum','sequential','scale_learned','single',1,NULL,NULL,8.44446842723649802875e-03,2.49756097560975609539e-01,4100,4100,1542,787485890,'6b00360d7a9a89ab3a756005aa7f3c8a','{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"o","read":null,"form":{"name":"const"},"gate":{"name":"add"}},{"site":"ffn","layers":{"name":"all"},"write":"sum","read":"sum","form":{"name":"softmax_memory","width":1,"widened":2,"heads":"single","reparameterization":null,"robust":false},"gate":{"name":"scale_learned","per":"sublayer"}}]}','{"placement":"both","attention.form":"const","attention.const.write":"o","ffn.form":"softmax_memory","ffn.softmax_memory.write":"sum","ffn.softmax_memory.gate":"scale_learned","learning_rate.const":0.0012775657751631783,"learning_rate.softmax_memory":0.008444468427236498}','2026-11-21T22:21:22.922571+00:00','2026-11-21T22:21:25.612398+00:00');
INSERT INTO "trials" VALUES(20,3,0,'complete',1.66666666666666657414e-01,NULL,8,1.66666666666666657414e-01,1,'proposed',NULL,'bias at attention''s output + learned-scale sequential softmax memory of 1–2 at the residual sum','const','o','sequential','add','single',NULL,NULL,NULL,1.27756577516317825805e-03,'softmax_memory','sum','sequential','scale_learned','single',1,NULL,NULL,8.44446842723649802875e-03,2.49756097560975609539e-01,4100,4100,1542,781100419,'6b00360d7a9a89ab3a756005aa7f3c8a:781100419','{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"o","read":null,"form":{"name":"const"},"gate":{"name":"add"}},{"site":"ffn","layers":{"name":"all"},"write":"sum","read":"sum","form":{"name":"softmax_memory","width":1,"widened":2,"heads":"single","reparameterization":null,"robust":false},"gate":{"name":"scale_learned","per":"sublayer"}}]}','{}','2026-11-21T22:21:25.781031+00:00','2026-11-21T22:21:37.817409+00:00');
INSERT INTO "trials" VALUES(21,3,1,'complete',1.62666666666666653862e-01,NULL,8,1.62666666666666653862e-01,1,'proposed',NULL,'bias at attention''s output + learned-scale sequential softmax memory of 1–2 at the residual sum','const','o','sequential','add','single',NULL,NULL,NULL,1.27756577516317825805e-03,'softmax_memory','sum','sequential','scale_learned','single',1,NULL,NULL,8.44446842723649802875e-03,2.49756097560975609539e-01,4100,4100,1542,701958913,'6b00360d7a9a89ab3a756005aa7f3c8a:701958913','{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"o","read":null,"form":{"name":"const"},"gate":{"name":"add"}},{"site":"ffn","layers":{"name":"all"},"write":"sum","read":"sum","form":{"name":"softmax_memory","width":1,"widened":2,"heads":"single","reparameterization":null,"robust":false},"gate":{"name":"scale_learned","per":"sublayer"}}]}','{}','2026-11-21T22:21:25.781031+00:00','2026-11-21T22:21:37.820001+00:00');
INSERT INTO "trials" VALUES(22,3,2,'complete',1.66666666666666657414e-01,NULL,8,1.66666666666666657414e-01,1,'published','lora_qv','scaled LoRA of 1 at q, v (LoRA on q, v)','lowrank','q+v','parallel','scale','single',1,NULL,2.0,1.09226745408202326192e-02,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1.0,4096,4096,1542,781100419,'5e40b1916633d02e649f40b0a691100c:781100419','{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"q","read":"x_attn","form":{"name":"lowrank","width":1,"widened":0,"heads":"single","bias":false},"gate":{"name":"scale","value":2.0}},{"site":"attn","layers":{"name":"all"},"write":"v","read":"ctx","form":{"name":"lowrank","width":1,"widened":0,"heads":"single","bias":false},"gate":{"name":"scale","value":2.0}}]}','{}','2026-11-21T22:21:25.781031+00:00','2026-11-21T22:21:56.343679+00:00');
INSERT INTO "trials" VALUES(23,3,3,'complete',1.69333333333333335701e-01,NULL,8,1.69333333333333335701e-01,1,'published','lora_qv','scaled LoRA of 1 at q, v (LoRA on q, v)','lowrank','q+v','parallel','scale','single',1,NULL,2.0,1.09226745408202326192e-02,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1.0,4096,4096,1542,701958913,'5e40b1916633d02e649f40b0a691100c:701958913','{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"q","read":"x_attn","form":{"name":"lowrank","width":1,"widened":0,"heads":"single","bias":false},"gate":{"name":"scale","value":2.0}},{"site":"attn","layers":{"name":"all"},"write":"v","read":"ctx","form":{"name":"lowrank","width":1,"widened":0,"heads":"single","bias":false},"gate":{"name":"scale","value":2.0}}]}','{}','2026-11-21T22:21:25.781031+00:00','2026-11-21T22:21:56.344749+00:00');
CREATE INDEX ix_trials_study_id_state ON trials (study_id, state);
CREATE TRIGGER trials_are_final BEFORE UPDATE ON trials WHEN OLD.state IN ('complete', 'pruned', 'failed') BEGIN SELECT RAISE(ABORT, 'a terminal trial never changes'); END;
CREATE INDEX ix_events_study_id ON events (study_id);
CREATE UNIQUE INDEX uq_attempts_one_open ON attempts (trial_id) WHERE ended_at IS NULL;
CREATE UNIQUE INDEX uq_attempts_one_final ON attempts (trial_id) WHERE ending IN ('complete', 'pruned', 'failed');
COMMIT;
