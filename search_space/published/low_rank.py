"""LoRA and its kin: linear maps of low rank beside frozen projections."""

from search_space.dimensions import Port
from search_space.forms import Dora, Vera
from search_space.published.edits import at_query_and_value, lora, lora_on_ffn, scaled
from search_space.published.method import PublishedMethod
from search_space.published.settings import ALPHA, BIAS, HE, HU, KOPICZKO, LIU_DORA, rank

LORAS: tuple[PublishedMethod, ...] = (
    PublishedMethod(
        name="lora_qv",
        title="LoRA on query and value",
        citation=HU,
        hyperparameters=(rank(8), ALPHA, BIAS),
        build=lambda shape, values: (lora(Port.Q, Port.X_ATTN, values), lora(Port.V, Port.CTX, values)),
    ),
    PublishedMethod(
        name="lora_kv",
        title="LoRA on key and value",
        citation=f"{HE}, table 1",
        hyperparameters=(rank(8), ALPHA, BIAS),
        build=lambda shape, values: (lora(Port.K, Port.CTX, values), lora(Port.V, Port.CTX, values)),
    ),
    PublishedMethod(
        name="lora_ffn",
        title="LoRA on the FFN",
        citation=HE,
        hyperparameters=(rank(8), ALPHA, BIAS),
        build=lora_on_ffn,
    ),
    PublishedMethod(
        name="dora",
        title="DoRA on query and value",
        citation=LIU_DORA,
        hyperparameters=(rank(8), ALPHA),
        build=lambda shape, values: at_query_and_value(Dora(width=int(values["rank"])), scaled(values)),
    ),
    PublishedMethod(
        name="vera",
        title="VeRA on query and value",
        citation=KOPICZKO,
        hyperparameters=(rank(256),),
        build=lambda shape, values: at_query_and_value(Vera(width=int(values["rank"]))),
    ),
)
