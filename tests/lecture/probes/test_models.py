"""The table of section 5.1."""

FIELDS = ["ffn", "attention", "norm", "placement", "position", "bias", "source"]


def test_models_table(ask):
    table = ask("models").set_index("model")
    assert {"Transformer", "GPT-2", "BERT", "T5", "Llama 2", "Llama 3", "Mistral 7B", "DeepSeek-V2"} < set(table.index)
    assert len(table) == 10
    assert table.notna().all(axis=None)
    assert list(table.columns) == ["year", *FIELDS]
    recipe = ("SwiGLU", "RMSNorm", "pre", "no")
    assert tuple(table.loc["Llama 3", ["ffn", "norm", "placement", "bias"]]) == recipe
    assert table.loc["Llama 3", "attention"].startswith("GQA")
    assert table.loc["Transformer", FIELDS[:-1]].tolist() == ["ReLU", "MHA", "LayerNorm", "post", "sinusoidal", "yes"]
