PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE deltaspace_schema (
	version INTEGER NOT NULL, 
	applied_at VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_deltaspace_schema PRIMARY KEY (version)
);
INSERT INTO deltaspace_schema VALUES(1,'2026-11-22T08:08:35.527422+00:00');
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
	CONSTRAINT pk_studies PRIMARY KEY (id), 
	CONSTRAINT ck_studies_epoch CHECK (epoch >= 0), 
	CONSTRAINT ck_studies_parameters CHECK (backbone_parameters > 0 AND budget_parameters > 0), 
	CONSTRAINT uq_studies_name UNIQUE (name)
);
INSERT INTO studies VALUES(1,'finished','{"name":"finished","backbone":"embedded","task":{"name":"docstrings","folder":null,"hub":null,"configuration":null,"text":null,"label":null,"labels":null,"splits":{},"metric":"accuracy","max_tokens":16,"train_examples":96,"validation_examples":40},"budget":4500,"trials":8,"seed":6,"training":{"steps":8,"batch_size":8,"head_learning_rate":0.005,"warmup_fraction":0.06,"weight_decay":0.0,"clip_norm":1.0,"precision":"fp32"},"pruning":{"first_rung_steps":2,"reduction":2,"protect_published":true},"search":{"sampler":"random","published":["lora_qv"],"published_scale":2.0,"attention_forms":["softmax_memory","bottleneck","lowrank","diag","const"],"ffn_forms":["bottleneck","lowrank","softmax_memory","diag","const"],"sites":"tied","layers":["all"],"activations":["relu","gelu","silu","tanh"],"gates":["add","scale","scale_learned","lse_convex","inducer"],"scales":[2.0,4.0],"scale_per":["sublayer"],"key_widths":[null,4],"norms":["none"],"biases":["usual"],"inits":["lora"],"reparameterizations":[null],"products":[4],"factors":[1],"sharing":["shared"],"near_duplicates":false,"attention_share":[0.05,0.95],"learning_rates":{"softmax_memory":[0.003,0.05],"bottleneck":[0.001,0.01],"lowrank":[0.001,0.02],"phm":[0.001,0.02],"diag":[0.003,0.05],"const":[0.001,0.01],"prompt":[0.01,0.3],"encoded_prompt":[0.0003,0.01],"full":[1e-05,0.0005],"sparse":[1e-05,0.0005],"intrinsic":[0.001,0.1]}},"fleet":{"backend":"inline","workers":"auto","pack":2,"time_budget":null,"artefacts":"@ARTEFACTS@"}}','embedded',5454336,4500,'accuracy',6,1,'2026-11-22T08:08:35.529739+00:00');
INSERT INTO studies VALUES(2,'middle','{"name":"middle","backbone":"embedded","task":{"name":"docstrings","folder":null,"hub":null,"configuration":null,"text":null,"label":null,"labels":null,"splits":{},"metric":"accuracy","max_tokens":16,"train_examples":96,"validation_examples":40},"budget":4500,"trials":12,"seed":5,"training":{"steps":8,"batch_size":8,"head_learning_rate":0.005,"warmup_fraction":0.06,"weight_decay":0.0,"clip_norm":1.0,"precision":"fp32"},"pruning":{"first_rung_steps":2,"reduction":2,"protect_published":true},"search":{"sampler":"tpe","published":["lora_qv"],"published_scale":2.0,"attention_forms":["softmax_memory","bottleneck","lowrank","diag","const"],"ffn_forms":["bottleneck","lowrank","softmax_memory","diag","const"],"sites":"tied","layers":["all"],"activations":["relu","gelu","silu","tanh"],"gates":["add","scale","scale_learned","lse_convex","inducer"],"scales":[2.0,4.0],"scale_per":["sublayer"],"key_widths":[null,4],"norms":["none"],"biases":["usual"],"inits":["lora"],"reparameterizations":[null],"products":[4],"factors":[1],"sharing":["shared"],"near_duplicates":false,"attention_share":[0.05,0.95],"learning_rates":{"softmax_memory":[0.003,0.05],"bottleneck":[0.001,0.01],"lowrank":[0.001,0.02],"phm":[0.001,0.02],"diag":[0.003,0.05],"const":[0.001,0.01],"prompt":[0.01,0.3],"encoded_prompt":[0.0003,0.01],"full":[1e-05,0.0005],"sparse":[1e-05,0.0005],"intrinsic":[0.001,0.1]}},"fleet":{"backend":"inline","workers":"auto","pack":2,"time_budget":null,"artefacts":"@ARTEFACTS@"}}','embedded',5454336,4500,'accuracy',5,1,'2026-11-22T08:08:43.193018+00:00');
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
INSERT INTO trials VALUES(1,1,0,'complete',0.14999999999999999444,NULL,8,0.14999999999999999444,1,'published','lora_qv','scaled LoRA of 1 at q, v (LoRA on q, v)','lowrank','q+v','parallel','scale','single',1,NULL,2.0,0.010922674540820232619,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1.0,4096,4096,1542,102949110,'5e40b1916633d02e649f40b0a691100c','{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"q","read":"x_attn","form":{"name":"lowrank","width":1,"widened":0,"heads":"single","bias":false},"gate":{"name":"scale","value":2.0}},{"site":"attn","layers":{"name":"all"},"write":"v","read":"ctx","form":{"name":"lowrank","width":1,"widened":0,"heads":"single","bias":false},"gate":{"name":"scale","value":2.0}}]}','{"learning_rate.lowrank":0.010922674540820233}','2026-11-22T08:08:36.762995+00:00','2026-11-22T08:08:38.730042+00:00');
INSERT INTO trials VALUES(2,1,1,'pruned',NULL,'rung 1 (4 steps): 0.15 ties the cut, and an earlier trial has it: 0.15',4,0.14999999999999999444,1,'proposed',NULL,'scaling at k, v','diag','k+v','sequential','mul','single',NULL,NULL,NULL,0.011502126769685270049,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1.0,2048,2048,1542,57025654,'098f010856e729b4c4e198fba50ba849','{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"k","read":"k","form":{"name":"diag"},"gate":{"name":"mul"}},{"site":"attn","layers":{"name":"all"},"write":"v","read":"v","form":{"name":"diag"},"gate":{"name":"mul"}}]}','{"placement":"attention","attention.form":"diag","attention.diag.write":"k+v","learning_rate.diag":0.01150212676968527}','2026-11-22T08:08:36.762995+00:00','2026-11-22T08:08:38.050427+00:00');
INSERT INTO trials VALUES(3,1,2,'pruned',NULL,'rung 1 (4 steps): 0.125 below the cut 0.15',4,0.125,1,'proposed',NULL,'scaling at the FFN',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'diag','f','sequential','mul','single',NULL,NULL,NULL,0.0076000623569569642976,0.0,1024,1024,1542,150077159,'6d4aa19f556231aa3afe35eddae5c22c','{"schema_version":2,"edits":[{"site":"ffn","layers":{"name":"all"},"write":"f","read":"f","form":{"name":"diag"},"gate":{"name":"mul"}}]}','{"placement":"ffn","ffn.form":"diag","ffn.diag.write":"f","ffn.diag.f.read":"f","learning_rate.diag":0.007600062356956964}','2026-11-22T08:08:38.053090+00:00','2026-11-22T08:08:38.731287+00:00');
INSERT INTO trials VALUES(4,1,3,'pruned',NULL,'rung 1 (4 steps): 0.125 below the cut 0.15',4,0.125,1,'proposed',NULL,'sequential softmax memory of 2 at the FFN',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'softmax_memory','f','sequential','add','single',2,NULL,NULL,0.010835527691983967701,0.0,4096,4096,1542,1286979368,'e1a48efd28dab8e858b81bf665b535ac','{"schema_version":2,"edits":[{"site":"ffn","layers":{"name":"all"},"write":"f","read":"f","form":{"name":"softmax_memory","width":2,"widened":0,"heads":"single","reparameterization":null,"robust":false},"gate":{"name":"add"}}]}','{"placement":"ffn","ffn.form":"softmax_memory","ffn.softmax_memory.write":"f","ffn.softmax_memory.f.read":"f","ffn.softmax_memory.gate":"add","learning_rate.softmax_memory":0.010835527691983968}','2026-11-22T08:08:38.734085+00:00','2026-11-22T08:08:39.237885+00:00');
INSERT INTO trials VALUES(5,1,4,'complete',0.29999999999999998889,NULL,8,0.29999999999999998889,1,'proposed',NULL,'prefix of 1–2 at the heads + bias at the FFN','softmax_memory','head','parallel','lse_convex','key_value_heads',1,NULL,NULL,0.042701659585738856172,'const','f','sequential','add','single',NULL,NULL,NULL,0.0046848999498432623844,0.75,4096,4096,1542,79346101,'bba4d25f0d1253176718e36338291927','{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"head","read":"q","form":{"name":"softmax_memory","width":1,"widened":2,"heads":"key_value_heads","reparameterization":null,"robust":false},"gate":{"name":"lse_convex"}},{"site":"ffn","layers":{"name":"all"},"write":"f","read":null,"form":{"name":"const"},"gate":{"name":"add"}}]}','{"placement":"both","attention.form":"softmax_memory","attention.softmax_memory.write":"head","attention.softmax_memory.head.read":"q","attention.softmax_memory.prefix_gate":"lse_convex","ffn.form":"const","learning_rate.softmax_memory":0.042701659585738856,"learning_rate.const":0.004684899949843262}','2026-11-22T08:08:38.734085+00:00','2026-11-22T08:08:39.810158+00:00');
INSERT INTO trials VALUES(6,1,5,'pruned',NULL,'rung 0 (2 steps): 0.1 below the cut 0.125',2,0.10000000000000000555,1,'proposed',NULL,'bias at v + scaled sequential low-rank map of 1–2 at the FFN','const','v','sequential','add','single',NULL,NULL,NULL,0.0052228524758015319046,'lowrank','f','sequential','scale','single',1,NULL,4.0,0.0012390223329943321917,0.25,4096,4096,1542,734195805,'66ea8db12f1abdfe2c45d9a4ba22c68e','{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"v","read":null,"form":{"name":"const"},"gate":{"name":"add"}},{"site":"ffn","layers":{"name":"all"},"write":"f","read":"f","form":{"name":"lowrank","width":1,"widened":2,"heads":"single","bias":false},"gate":{"name":"scale","value":4.0}}]}','{"placement":"both","attention.form":"const","attention.const.write":"v","ffn.form":"lowrank","ffn.lowrank.write":"f","ffn.lowrank.f.read":"f","ffn.lowrank.gate":"scale","ffn.scale":"4.0","learning_rate.const":0.005222852475801532,"learning_rate.lowrank":0.0012390223329943322}','2026-11-22T08:08:39.242758+00:00','2026-11-22T08:08:39.488174+00:00');
INSERT INTO trials VALUES(7,1,6,'pruned',NULL,'rung 1 (4 steps): 0.15 ties the cut, and an earlier trial has it: 0.15',4,0.14999999999999999444,1,'proposed',NULL,'scaling at the residual sum',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'diag','sum','sequential','mul','single',NULL,NULL,NULL,0.0047160564602263454689,0.0,1024,1024,1542,1533128399,'b0d956ddfbf9f28bf6e0c6e79b216726','{"schema_version":2,"edits":[{"site":"ffn","layers":{"name":"all"},"write":"sum","read":"sum","form":{"name":"diag"},"gate":{"name":"mul"}}]}','{"placement":"ffn","ffn.form":"diag","ffn.diag.write":"sum","learning_rate.diag":0.0047160564602263455}','2026-11-22T08:08:39.491424+00:00','2026-11-22T08:08:40.102206+00:00');
INSERT INTO trials VALUES(8,1,7,'complete',0.17499999999999998889,NULL,8,0.17499999999999998889,1,'proposed',NULL,'bias at attention''s output + learned-scale sequential softmax memory of 1–2 at the residual sum','const','o','sequential','add','single',NULL,NULL,NULL,0.001277565775163178258,'softmax_memory','sum','sequential','scale_learned','single',1,NULL,NULL,0.0084444684272364980287,0.24975609756097560953,4100,4100,1542,787485890,'6b00360d7a9a89ab3a756005aa7f3c8a','{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"o","read":null,"form":{"name":"const"},"gate":{"name":"add"}},{"site":"ffn","layers":{"name":"all"},"write":"sum","read":"sum","form":{"name":"softmax_memory","width":1,"widened":2,"heads":"single","reparameterization":null,"robust":false},"gate":{"name":"scale_learned","per":"sublayer"}}]}','{"placement":"both","attention.form":"const","attention.const.write":"o","ffn.form":"softmax_memory","ffn.softmax_memory.write":"sum","ffn.softmax_memory.gate":"scale_learned","learning_rate.const":0.0012775657751631783,"learning_rate.softmax_memory":0.008444468427236498}','2026-11-22T08:08:39.845294+00:00','2026-11-22T08:08:40.496016+00:00');
INSERT INTO trials VALUES(9,2,0,'complete',0.125,NULL,8,0.125,1,'published','lora_qv','scaled LoRA of 1 at q, v (LoRA on q, v)','lowrank','q+v','parallel','scale','single',1,NULL,2.0,0.0011273008389395965285,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1.0,4096,4096,1542,2034869288,'8b1140b882ce9d4cded5214cd7f4590b','{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"q","read":"x_attn","form":{"name":"lowrank","width":1,"widened":0,"heads":"single","bias":false},"gate":{"name":"scale","value":2.0}},{"site":"attn","layers":{"name":"all"},"write":"v","read":"ctx","form":{"name":"lowrank","width":1,"widened":0,"heads":"single","bias":false},"gate":{"name":"scale","value":2.0}}]}','{"learning_rate.lowrank":0.0011273008389395965}','2026-11-22T08:08:44.334323+00:00','2026-11-22T08:08:46.111966+00:00');
INSERT INTO trials VALUES(10,2,1,'pruned',NULL,'rung 0 (2 steps): 0.125 below the cut 0.15',2,0.125,1,'proposed',NULL,'learned-scale parallel low-rank map of 2 at the FFN',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'lowrank','f','parallel','scale_learned','single',2,NULL,NULL,0.0016364153821213584319,0.0,4100,4100,1542,396060440,'726c65568fed31a5b44bc6d76eeffe08','{"schema_version":2,"edits":[{"site":"ffn","layers":{"name":"all"},"write":"f","read":"x_ffn","form":{"name":"lowrank","width":2,"widened":0,"heads":"single","bias":false},"gate":{"name":"scale_learned","per":"sublayer"}}]}','{"placement":"ffn","ffn.form":"lowrank","ffn.lowrank.write":"f","ffn.lowrank.f.read":"x_ffn","ffn.lowrank.gate":"scale_learned","learning_rate.lowrank":0.0016364153821213584}','2026-11-22T08:08:44.334323+00:00','2026-11-22T08:08:45.236846+00:00');
INSERT INTO trials VALUES(11,2,2,'pruned',NULL,'rung 0 (2 steps): 0.125 below the cut 0.15',2,0.125,1,'proposed',NULL,'bias at q + scaled sequential softmax memory of 1–2 at the residual sum','const','q','sequential','add','single',NULL,NULL,NULL,0.002095656275482223399,'softmax_memory','sum','sequential','scale','single',1,NULL,4.0,0.022604215708001335061,0.25,4096,4096,1542,1656311285,'143727d59073a5c9125c40858e24dc89','{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"q","read":null,"form":{"name":"const"},"gate":{"name":"add"}},{"site":"ffn","layers":{"name":"all"},"write":"sum","read":"sum","form":{"name":"softmax_memory","width":1,"widened":2,"heads":"single","reparameterization":null,"robust":false},"gate":{"name":"scale","value":4.0}}]}','{"placement":"both","attention.form":"const","attention.const.write":"q","ffn.form":"softmax_memory","ffn.softmax_memory.write":"sum","ffn.softmax_memory.gate":"scale","ffn.scale":"4.0","learning_rate.const":0.0020956562754822234,"learning_rate.softmax_memory":0.022604215708001335}','2026-11-22T08:08:45.240127+00:00','2026-11-22T08:08:45.544911+00:00');
INSERT INTO trials VALUES(12,2,3,'complete',0.125,NULL,8,0.125,1,'proposed',NULL,'sequential softmax memory of 2 at the residual sum',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'softmax_memory','sum','sequential','add','single',2,NULL,NULL,0.014863972904482117276,0.0,4096,4096,1542,1034300484,'99cd25c63dc3060254c703fb30b54ca3','{"schema_version":2,"edits":[{"site":"ffn","layers":{"name":"all"},"write":"sum","read":"sum","form":{"name":"softmax_memory","width":2,"widened":0,"heads":"single","reparameterization":null,"robust":false},"gate":{"name":"add"}}]}','{"placement":"ffn","ffn.form":"softmax_memory","ffn.softmax_memory.write":"sum","ffn.softmax_memory.gate":"add","learning_rate.softmax_memory":0.014863972904482117}','2026-11-22T08:08:45.595794+00:00','2026-11-22T08:08:47.105511+00:00');
INSERT INTO trials VALUES(13,2,4,'pruned',NULL,'rung 0 (2 steps): 0.125 below the cut 0.15',2,0.125,1,'proposed',NULL,'LoRA of 1–2 at v + bias at the FFN','lowrank','v','parallel','add','single',1,NULL,NULL,0.0065589902928006923316,'const','f','sequential','add','single',NULL,NULL,NULL,0.0097241690263465217075,0.75,4096,4096,1542,902763100,'0d577b2283b1ea268cde082395d5d87f','{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"v","read":"ctx","form":{"name":"lowrank","width":1,"widened":2,"heads":"single","bias":false},"gate":{"name":"add"}},{"site":"ffn","layers":{"name":"all"},"write":"f","read":null,"form":{"name":"const"},"gate":{"name":"add"}}]}','{"placement":"both","attention.form":"lowrank","attention.lowrank.write":"v","attention.lowrank.gate":"add","ffn.form":"const","learning_rate.lowrank":0.006558990292800692,"learning_rate.const":0.009724169026346522}','2026-11-22T08:08:46.123717+00:00','2026-11-22T08:08:46.830657+00:00');
INSERT INTO trials VALUES(14,2,5,'complete',0.29999999999999998889,NULL,8,0.29999999999999998889,1,'proposed',NULL,'scaling at k, v','diag','k+v','sequential','mul','single',NULL,NULL,NULL,0.0033160821789385850136,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1.0,2048,2048,1542,851471095,'70b269b28b3fe6df23faec59978fc5de','{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"k","read":"k","form":{"name":"diag"},"gate":{"name":"mul"}},{"site":"attn","layers":{"name":"all"},"write":"v","read":"v","form":{"name":"diag"},"gate":{"name":"mul"}}]}','{"placement":"attention","attention.form":"diag","attention.diag.write":"k+v","learning_rate.diag":0.003316082178938585}','2026-11-22T08:08:46.833762+00:00','2026-11-22T08:09:05.200386+00:00');
INSERT INTO trials VALUES(15,2,6,'pruned',NULL,'rung 0 (2 steps): 0.125 below the cut 0.15',2,0.125,1,'proposed',NULL,'scaled LoRA of 2 at k','lowrank','k','parallel','scale','single',2,NULL,4.0,0.0010897246417938130039,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1.0,4096,4096,1542,135052459,'887e1538eace3848e4e0aa879bcbfec8','{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"k","read":"ctx","form":{"name":"lowrank","width":2,"widened":0,"heads":"single","bias":false},"gate":{"name":"scale","value":4.0}}]}','{"placement":"attention","attention.form":"lowrank","attention.lowrank.write":"k","attention.lowrank.gate":"scale","attention.scale":"4.0","learning_rate.lowrank":0.001089724641793813}','2026-11-22T08:08:47.108642+00:00','2026-11-22T08:09:02.328447+00:00');
INSERT INTO trials VALUES(16,2,7,'pruned',NULL,'rung 0 (2 steps): 0.125 ties the cut, and an earlier trial has it: 0.125',2,0.125,1,'proposed',NULL,'parallel diagonal at q + bias at the FFN','diag','q','parallel','add','single',NULL,NULL,NULL,0.0068928770897939053291,'const','f','sequential','add','single',NULL,NULL,NULL,0.0011329556688542473212,0.5,2048,2048,1542,1412250737,'e6b21a4a5d2bcfcaaa80731c3a9d3737','{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"q","read":"x_attn","form":{"name":"diag"},"gate":{"name":"add"}},{"site":"ffn","layers":{"name":"all"},"write":"f","read":null,"form":{"name":"const"},"gate":{"name":"add"}}]}','{"placement":"both","attention.form":"diag","attention.diag.write":"q","attention.diag.q.read":"x_attn","attention.diag.gate":"add","ffn.form":"const","learning_rate.diag":0.006892877089793905,"learning_rate.const":0.0011329556688542473}','2026-11-22T08:09:02.350082+00:00','2026-11-22T08:09:02.940484+00:00');
INSERT INTO trials VALUES(17,2,8,'running',NULL,NULL,4,0.2000000000000000111,1,'proposed',NULL,'bias at the FFN',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'const','f','sequential','add','single',NULL,NULL,NULL,0.0016391667010990202627,0.0,1024,1024,1542,855797222,'6a82a06b3fcf9c0f191b1993e39d0302','{"schema_version":2,"edits":[{"site":"ffn","layers":{"name":"all"},"write":"f","read":null,"form":{"name":"const"},"gate":{"name":"add"}}]}','{"placement":"ffn","ffn.form":"const","learning_rate.const":0.0016391667010990203}','2026-11-22T08:09:02.953120+00:00',NULL);
INSERT INTO trials VALUES(18,2,9,'pruned',NULL,'rung 1 (4 steps): 0.125 below the cut 0.2',4,0.125,1,'proposed',NULL,'parallel softmax memory of 2 at attention''s output','softmax_memory','o','parallel','add','single',2,NULL,NULL,0.0057832129714099943587,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1.0,4096,4096,1542,1764436165,'7501bbc16ad6c6f1f68b304a81a64133','{"schema_version":2,"edits":[{"site":"attn","layers":{"name":"all"},"write":"o","read":"x_attn","form":{"name":"softmax_memory","width":2,"widened":0,"heads":"single","reparameterization":null,"robust":false},"gate":{"name":"add"}}]}','{"placement":"attention","attention.form":"softmax_memory","attention.softmax_memory.write":"o","attention.softmax_memory.o.read":"x_attn","attention.softmax_memory.gate":"add","learning_rate.softmax_memory":0.005783212971409994}','2026-11-22T08:09:05.214639+00:00','2026-11-22T08:09:08.244633+00:00');
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
INSERT INTO events VALUES(1,1,'2026-11-22T08:08:36.752522+00:00','takeover',NULL,'keeper 1 is inline 9822');
INSERT INTO events VALUES(2,1,'2026-11-22T08:08:40.497391+00:00','launch',NULL,'finished: all 8 trials have ended');
INSERT INTO events VALUES(3,2,'2026-11-22T08:08:44.324503+00:00','takeover',NULL,'keeper 1 is inline 9922');
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
INSERT INTO attempts VALUES(1,1,'inline/6847edd4','2026-11-22T08:09:36.762995+00:00','2026-11-22T08:08:36.762995+00:00','2026-11-22T08:08:38.730042+00:00','complete');
INSERT INTO attempts VALUES(2,1,'inline/6847edd4','2026-11-22T08:09:36.762995+00:00','2026-11-22T08:08:36.762995+00:00','2026-11-22T08:08:38.050427+00:00','pruned');
INSERT INTO attempts VALUES(3,1,'inline/6847edd4','2026-11-22T08:09:38.053090+00:00','2026-11-22T08:08:38.053090+00:00','2026-11-22T08:08:38.731287+00:00','pruned');
INSERT INTO attempts VALUES(4,1,'inline/6847edd4','2026-11-22T08:09:38.734085+00:00','2026-11-22T08:08:38.734085+00:00','2026-11-22T08:08:39.237885+00:00','pruned');
INSERT INTO attempts VALUES(5,1,'inline/6847edd4','2026-11-22T08:09:38.734085+00:00','2026-11-22T08:08:38.734085+00:00','2026-11-22T08:08:39.810158+00:00','complete');
INSERT INTO attempts VALUES(6,1,'inline/6847edd4','2026-11-22T08:09:39.242758+00:00','2026-11-22T08:08:39.242758+00:00','2026-11-22T08:08:39.488174+00:00','pruned');
INSERT INTO attempts VALUES(7,1,'inline/6847edd4','2026-11-22T08:09:39.491424+00:00','2026-11-22T08:08:39.491424+00:00','2026-11-22T08:08:40.102206+00:00','pruned');
INSERT INTO attempts VALUES(8,1,'inline/6847edd4','2026-11-22T08:09:39.845294+00:00','2026-11-22T08:08:39.845294+00:00','2026-11-22T08:08:40.496016+00:00','complete');
INSERT INTO attempts VALUES(9,1,'inline/aab60216','2026-11-22T08:09:44.334323+00:00','2026-11-22T08:08:44.334323+00:00','2026-11-22T08:08:46.111966+00:00','complete');
INSERT INTO attempts VALUES(10,1,'inline/aab60216','2026-11-22T08:09:44.334323+00:00','2026-11-22T08:08:44.334323+00:00','2026-11-22T08:08:45.236846+00:00','pruned');
INSERT INTO attempts VALUES(11,1,'inline/aab60216','2026-11-22T08:09:45.240127+00:00','2026-11-22T08:08:45.240127+00:00','2026-11-22T08:08:45.544911+00:00','pruned');
INSERT INTO attempts VALUES(12,1,'inline/aab60216','2026-11-22T08:09:45.595794+00:00','2026-11-22T08:08:45.595794+00:00','2026-11-22T08:08:47.105511+00:00','complete');
INSERT INTO attempts VALUES(13,1,'inline/aab60216','2026-11-22T08:09:46.123717+00:00','2026-11-22T08:08:46.123717+00:00','2026-11-22T08:08:46.830657+00:00','pruned');
INSERT INTO attempts VALUES(14,1,'inline/aab60216','2026-11-22T08:10:05.187966+00:00','2026-11-22T08:08:46.833762+00:00','2026-11-22T08:09:05.200386+00:00','complete');
INSERT INTO attempts VALUES(15,1,'inline/aab60216','2026-11-22T08:09:47.108642+00:00','2026-11-22T08:08:47.108642+00:00','2026-11-22T08:09:02.328447+00:00','pruned');
INSERT INTO attempts VALUES(16,1,'inline/aab60216','2026-11-22T08:10:02.350082+00:00','2026-11-22T08:09:02.350082+00:00','2026-11-22T08:09:02.940484+00:00','pruned');
INSERT INTO attempts VALUES(17,1,'inline/aab60216','2026-11-22T08:10:05.187966+00:00','2026-11-22T08:09:02.953120+00:00',NULL,NULL);
INSERT INTO attempts VALUES(18,1,'inline/aab60216','2026-11-22T08:10:05.214639+00:00','2026-11-22T08:09:05.214639+00:00','2026-11-22T08:09:08.244633+00:00','pruned');
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
INSERT INTO artefacts VALUES(5,1,'delta',8,'@ARTEFACTS@/finished/trial-0/attempt-1/step-000008.safetensors','1626e6c4d0eab8195c1464649ac21a897f807e5bd3298122d0f55672dc14f8b9',77064);
INSERT INTO artefacts VALUES(10,5,'delta',8,'@ARTEFACTS@/finished/trial-4/attempt-1/step-000008.safetensors','f2354af50d9437897e7d116cb5d2a1bfed6271ec7d6b9932cb13b7c92217ea78',75264);
INSERT INTO artefacts VALUES(11,8,'delta',8,'@ARTEFACTS@/finished/trial-7/attempt-1/step-000008.safetensors','96dc19d1ed6c4837c37046fabd31f3ae99bc996090e77e167f0accec9bfa8247',76920);
INSERT INTO artefacts VALUES(15,9,'delta',8,'@ARTEFACTS@/middle/trial-0/attempt-1/step-000008.safetensors','be6ac02a8507c657d89c63f4e78876db347e2af53cca09fbd7e6520fc3ef7325',77064);
INSERT INTO artefacts VALUES(18,12,'delta',8,'@ARTEFACTS@/middle/trial-3/attempt-1/step-000008.safetensors','4b35eab41f8e90bfd5aa16978e0962173e498c37012e682dcc06ae5827f66b69',72968);
INSERT INTO artefacts VALUES(19,14,'delta',8,'@ARTEFACTS@/middle/trial-5/attempt-1/step-000008.safetensors','640252f0c63628290f52fb974991126b4eb0ef0d91dcec4f609ae1baa28ed5c5',48408);
INSERT INTO artefacts VALUES(20,17,'snapshot',2,'@ARTEFACTS@/middle/trial-8/attempt-1/step-000002.safetensors','117808fb31abf413208e4ab7c924112d14d0590e856f4a948a1a1cc7eb871784',33864);
INSERT INTO artefacts VALUES(22,17,'snapshot',4,'@ARTEFACTS@/middle/trial-8/attempt-1/step-000004.safetensors','0ca73824df3fee747970914260f7e235028babdd124ce3f57839c86d62c0bc2c',33864);
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
INSERT INTO readings VALUES(1,2,1,0.050000000000000002775,'{"accuracy":0.05,"f1":0.02639751552795031,"matthews":-0.13608638883297883,"validation_loss":1.8293582916259765}',1.8090957403182983398,0.49749576499016257002,0);
INSERT INTO readings VALUES(1,4,1,0.14999999999999999444,'{"accuracy":0.15,"f1":0.043478260869565216,"matthews":0.0,"validation_loss":1.872080421447754}',1.7687833905220031738,0.21427786900312639772,1);
INSERT INTO readings VALUES(1,8,1,0.14999999999999999444,'{"accuracy":0.15,"f1":0.043478260869565216,"matthews":0.0,"validation_loss":1.8580921173095704}',1.9194972813129425048,0.36905529601062880828,NULL);
INSERT INTO readings VALUES(2,2,1,0.074999999999999997224,'{"accuracy":0.075,"f1":0.038461538461538464,"matthews":-0.07194710091535289,"validation_loss":1.888714599609375}',1.8679326176643371582,0.32956167699740035459,0);
INSERT INTO readings VALUES(2,4,1,0.14999999999999999444,'{"accuracy":0.15,"f1":0.08928571428571429,"matthews":0.05839870346973741,"validation_loss":1.9254846572875977}',1.8715529441833496093,0.22460565700021106749,1);
INSERT INTO readings VALUES(3,2,1,0.125,'{"accuracy":0.125,"f1":0.037037037037037035,"matthews":0.0,"validation_loss":1.8446908950805665}',1.8103470802307128906,0.10404204800579464063,0);
INSERT INTO readings VALUES(3,4,1,0.125,'{"accuracy":0.125,"f1":0.037037037037037035,"matthews":0.0,"validation_loss":1.913726234436035}',1.7504100203514099121,0.19020860300952335819,1);
INSERT INTO readings VALUES(4,2,1,0.125,'{"accuracy":0.125,"f1":0.037037037037037035,"matthews":0.0,"validation_loss":1.9195829391479493}',1.7082844972610473632,0.15964383999380515888,0);
INSERT INTO readings VALUES(4,4,1,0.125,'{"accuracy":0.125,"f1":0.037037037037037035,"matthews":0.0,"validation_loss":1.9923282623291017}',1.6901449561119079589,0.10984226100117666646,1);
INSERT INTO readings VALUES(5,2,1,0.14999999999999999444,'{"accuracy":0.15,"f1":0.06351981351981352,"matthews":0.1037920614632546,"validation_loss":1.8237625122070313}',1.8004401326179504394,0.10944073899008799344,0);
INSERT INTO readings VALUES(5,4,1,0.2750000000000000222,'{"accuracy":0.275,"f1":0.12247474747474747,"matthews":0.09144900869811855,"validation_loss":1.9041963577270509}',1.6428309082984924316,0.10696976999315666034,1);
INSERT INTO readings VALUES(5,8,1,0.29999999999999998889,'{"accuracy":0.3,"f1":0.0784313725490196,"matthews":0.022016497886144917,"validation_loss":1.8873676300048827}',1.9929589927196502685,0.2517118599935201928,NULL);
INSERT INTO readings VALUES(6,2,1,0.10000000000000000555,'{"accuracy":0.1,"f1":0.032520325203252036,"matthews":-0.11130384518677136,"validation_loss":1.8286279678344726}',1.7604080438613891601,0.17759321399353211745,0);
INSERT INTO readings VALUES(7,2,1,0.14999999999999999444,'{"accuracy":0.15,"f1":0.08253968253968254,"matthews":0.045360921162651446,"validation_loss":1.8523160934448242}',1.8133725523948669433,0.12188039500324521213,0);
INSERT INTO readings VALUES(7,4,1,0.14999999999999999444,'{"accuracy":0.15,"f1":0.06440071556350625,"matthews":0.06939031079107441,"validation_loss":1.789667510986328}',1.846914529800415039,0.13331107699923450127,1);
INSERT INTO readings VALUES(8,2,1,0.29999999999999998889,'{"accuracy":0.3,"f1":0.07692307692307693,"matthews":0.0,"validation_loss":1.714919662475586}',1.7790210247039794921,0.11321584299730602651,0);
INSERT INTO readings VALUES(8,4,1,0.29999999999999998889,'{"accuracy":0.3,"f1":0.08,"matthews":0.031543054108759384,"validation_loss":1.7287872314453125}',1.957075357437133789,0.15524230399751104414,1);
INSERT INTO readings VALUES(8,8,1,0.17499999999999998889,'{"accuracy":0.175,"f1":0.08637873754152824,"matthews":0.14870296936986566,"validation_loss":1.7960573196411134}',1.7580107450485229492,0.22416989299381384626,NULL);
INSERT INTO readings VALUES(9,2,1,0.14999999999999999444,'{"accuracy":0.15,"f1":0.08134920634920635,"matthews":0.07457289502378048,"validation_loss":1.862154769897461}',1.8542096614837646484,0.75840289500047219917,0);
INSERT INTO readings VALUES(9,4,1,0.125,'{"accuracy":0.125,"f1":0.037037037037037035,"matthews":0.0,"validation_loss":1.9283580780029297}',1.8054738640785217285,0.16891918799956329166,1);
INSERT INTO readings VALUES(9,8,1,0.125,'{"accuracy":0.125,"f1":0.037037037037037035,"matthews":0.0,"validation_loss":1.920125389099121}',1.9034541547298431396,0.26841669600980821996,NULL);
INSERT INTO readings VALUES(10,2,1,0.125,'{"accuracy":0.125,"f1":0.037037037037037035,"matthews":0.0,"validation_loss":1.8939125061035156}',1.758551180362701416,0.13296869300393154844,0);
INSERT INTO readings VALUES(11,2,1,0.125,'{"accuracy":0.125,"f1":0.037037037037037035,"matthews":0.0,"validation_loss":2.2054302215576174}',1.7687913179397583007,0.12393612100277096033,0);
INSERT INTO readings VALUES(12,2,1,0.25,'{"accuracy":0.25,"f1":0.07575757575757576,"matthews":-0.02946278254943948,"validation_loss":1.74981689453125}',1.8242531418800354003,0.10903205500653712078,0);
INSERT INTO readings VALUES(12,4,1,0.14999999999999999444,'{"accuracy":0.15,"f1":0.06256921373200443,"matthews":0.05857995763055314,"validation_loss":1.8118251800537108}',1.8628085255622863769,0.12067502599529689177,1);
INSERT INTO readings VALUES(12,8,1,0.125,'{"accuracy":0.125,"f1":0.037037037037037035,"matthews":0.0,"validation_loss":1.8473209381103515}',1.8628751337528228759,0.33955187800893327221,NULL);
INSERT INTO readings VALUES(13,2,1,0.125,'{"accuracy":0.125,"f1":0.03968253968253968,"matthews":-0.03915076988748475,"validation_loss":1.8151945114135741}',1.8541821241378784179,0.49894192599458619952,0);
INSERT INTO readings VALUES(14,2,1,0.22500000000000000555,'{"accuracy":0.225,"f1":0.10984848484848486,"matthews":0.08143787914665962,"validation_loss":1.8070341110229493}',1.7841529250144958496,0.12244044599356129765,0);
INSERT INTO readings VALUES(14,4,1,0.29999999999999998889,'{"accuracy":0.3,"f1":0.07692307692307693,"matthews":0.0,"validation_loss":1.7909889221191406}',1.8277679085731506347,3.9469470609983545728,1);
INSERT INTO readings VALUES(14,8,1,0.29999999999999998889,'{"accuracy":0.3,"f1":0.08,"matthews":0.031543054108759384,"validation_loss":1.8083873748779298}',1.8114005327224731445,2.0666744620029930956,NULL);
INSERT INTO readings VALUES(15,2,1,0.125,'{"accuracy":0.125,"f1":0.03787878787878788,"matthews":0.0,"validation_loss":1.8987255096435547}',1.7674801349639892578,11.240031401008309331,0);
INSERT INTO readings VALUES(16,2,1,0.125,'{"accuracy":0.125,"f1":0.037037037037037035,"matthews":0.0,"validation_loss":1.8327802658081054}',1.7915322184562683105,0.32508003100519999861,0);
INSERT INTO readings VALUES(17,2,1,0.17499999999999998889,'{"accuracy":0.175,"f1":0.06984126984126983,"matthews":0.034020690871988585,"validation_loss":1.7853059768676758}',1.8159592747688293457,0.36687983300362247973,0);
INSERT INTO readings VALUES(17,4,1,0.2000000000000000111,'{"accuracy":0.2,"f1":0.08596491228070176,"matthews":0.039283710065919304,"validation_loss":1.7846782684326172}',1.9092596173286437988,0.41883674498967593535,1);
INSERT INTO readings VALUES(18,2,1,0.14999999999999999444,'{"accuracy":0.15,"f1":0.07579672695951765,"matthews":0.08111071056538127,"validation_loss":1.7991798400878907}',1.8140310049057006835,0.47642385499784722924,0);
INSERT INTO readings VALUES(18,4,1,0.125,'{"accuracy":0.125,"f1":0.037037037037037035,"matthews":0.0,"validation_loss":1.8071680068969727}',1.9718662500381469726,1.8285754470052779652,1);
CREATE INDEX ix_trials_study_id_state ON trials (study_id, state);
CREATE TRIGGER trials_are_final BEFORE UPDATE ON trials WHEN OLD.state IN ('complete', 'pruned', 'failed') BEGIN SELECT RAISE(ABORT, 'a terminal trial never changes'); END;
CREATE INDEX ix_events_study_id ON events (study_id);
CREATE UNIQUE INDEX uq_attempts_one_open ON attempts (trial_id) WHERE ended_at IS NULL;
CREATE UNIQUE INDEX uq_attempts_one_final ON attempts (trial_id) WHERE ending IN ('complete', 'pruned', 'failed');
COMMIT;
