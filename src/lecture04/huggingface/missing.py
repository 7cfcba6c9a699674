"""What architectures of Hugging Face's need and no part here is; without torch."""

from lecture04.config.errors import nearest

EXPERTS = "experts, which a router chooses for each token"
PARALLEL = "attention and feed-forward layer side by side"
ENCODER = "an encoder, and attention to what it says"
BOTH_SIDES = "attention to both sides, trained to fill gaps"
RECURRENT = "a recurrent state in attention's place"
# model_type -> the part that is missing here, for architectures that somebody may well try.
MISSING = {
    "bloom": "a norm on the embeddings",
    "opt": "learned positions that begin at 2",
    "gpt_neo": "attention to the last tokens alone in every other layer",
    "gemma3": "attention windows, with a RoPE base of their own, and images",
    "gemma3_text": "attention windows, with a RoPE base of their own",
    "olmo": "a norm without parameters",
    "olmo2": "norms behind the sublayers alone, and a norm over all queries together",
    **dict.fromkeys(("gptj", "codegen", "phi", "falcon", "cohere", "cohere2"), PARALLEL),
    **dict.fromkeys(
        ("mixtral", "qwen2_moe", "qwen3_moe", "olmoe", "dbrx", "gpt_oss", "llama4", "llama4_text", "phimoe"), EXPERTS
    ),
    **dict.fromkeys(("t5", "mt5", "umt5", "bart", "mbart", "pegasus", "marian"), ENCODER),
    **dict.fromkeys(("bert", "roberta", "xlm-roberta", "distilbert", "electra", "deberta-v2"), BOTH_SIDES),
    **dict.fromkeys(("mamba", "mamba2", "falcon_mamba", "rwkv", "jamba", "recurrent_gemma"), RECURRENT),
}


def why(model_type: object, known: list[str]) -> str:
    """The sentence for an architecture that cannot be read, naming the missing part where it is known."""
    if isinstance(model_type, str) and model_type in MISSING:
        return f"model_type={model_type}: there is no part here for {MISSING[model_type]}."
    if model_type is None:
        return "model_type: missing, so it is unknown what the parameters mean." + nearest("", known)
    return f"model_type={model_type}: how its parts are ours is not known here." + nearest(model_type, known)
