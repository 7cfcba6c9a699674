"""Folders written and read: equal to the bit, whole or not at all, and each thing that is wrong said by its name."""

import json
from dataclasses import fields
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from lecture04.config import sizes
from lecture04.config.errors import UserError
from lecture04.huggingface import ARCHITECTURES, files, folders
from lecture04.nn.model import LanguageModel

PARTS = ("model", "ffn", "norm", "placement", "attention", "posenc")
UP = "model.layers.0.mlp.up_proj.weight"


def alike(one, other):
    """Whether two models are the same to the bit."""
    a, b = one.state_dict(), other.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def differing(one, other):
    """The parts in which two configs differ; whether attention is called gqa or mha is no difference."""
    return {
        f"{family}.{f.name}"
        for family in PARTS
        for f in fields(getattr(one, family))
        if getattr(getattr(one, family), f.name) != getattr(getattr(other, family), f.name)
    } - {"attention.name"}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_round_trip_is_equal_to_the_bit(written, tmp_path, architecture):
    folder, cfg, model = written(architecture)
    read, back = folders.load(folder)
    assert alike(model, back)
    assert (differing(cfg, read), read.vocab_size, read.n_ctx) == (set(), 92, 64)
    assert sizes.params(read) == sum(p.numel() for p in back.parameters())
    folders.save(back, read, tmp_path / "again", architecture)
    for name in ("config.json", "model.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()


@pytest.mark.parametrize("layout", ["rope", "rope_half"])
@pytest.mark.parametrize("tied", ["true", "false"])
@pytest.mark.parametrize("scale", ["1", "null"])
def test_our_own_choices_come_back_as_the_same_function(model_of, tmp_path, some_tokens, layout, tied, scale):
    """RoPE in pairs, tied and scaled embeddings: config.json has no word for them, the parameters take them up."""
    cfg, model = model_of("recipe=llama", f"posenc={layout}", f"model.tied={tied}", f"model.embed_scale={scale}")
    folders.save(model, cfg, tmp_path / "hf")
    assert torch.allclose(folders.load(tmp_path / "hf")[1](some_tokens), model(some_tokens), atol=1e-5)


def test_the_architecture_is_the_first_that_has_all_parts(model_of, expressed, tmp_path):
    chosen = {}
    for architecture, overrides in expressed.items():
        cfg, model = model_of(*overrides)
        chosen[architecture] = folders.save(model, cfg, tmp_path / architecture).model_type
    # A Mistral without a window is a Llama, and what V3 adds to V2 is in the experts.
    others = {"mistral": "llama", "deepseek_v3": "deepseek_v2"}
    assert chosen == {name: others.get(name, name) for name in expressed}


def test_what_no_architecture_expresses_is_said_with_what_the_nearest_lacks(model_of, tmp_path):
    cfg, model = model_of("recipe=llama", "posenc=shaw")
    with pytest.raises(UserError, match=r"nearest is llama:\nposenc\.name=shaw: llama has none\. Choices: rope"):
        folders.save(model, cfg, tmp_path / "hf")
    with pytest.raises(UserError, match=r"posenc\.name=shaw: gpt2 has none"):
        folders.save(model, cfg, tmp_path / "hf", "gpt2")
    with pytest.raises(UserError, match=r"lama: no such architecture\. Did you mean llama\?"):
        folders.save(model, cfg, tmp_path / "hf", "lama")
    assert not list(tmp_path.iterdir())


def test_a_norms_bias_that_mpt_cannot_hold_is_named(model_of, expressed, tmp_path):
    cfg, model = model_of(*expressed["mpt"])
    with torch.no_grad():
        model.blocks[1].ffn_norm.bias.add_(1)
    with pytest.raises(
        UserError, match=r"mpt: blocks\.1\.ffn_norm\.weight, blocks\.1\.ffn_norm\.bias: the bias is not"
    ):
        folders.save(model, cfg, tmp_path / "hf")


def test_special_tokens_are_those_given_or_null(written, tmp_path):
    folder, cfg, model = written("llama")
    said = json.loads((folder / "config.json").read_text())
    assert [said[name] for name in folders.SPECIAL_TOKENS] == [None] * 3
    folders.save(model, cfg, tmp_path / "other", special_tokens={"bos_token_id": 5})
    said = json.loads((tmp_path / "other" / "config.json").read_text())
    assert [said[name] for name in folders.SPECIAL_TOKENS] == [5, None, None]


def test_a_folder_of_other_things_is_not_overwritten(written, model_of, tmp_path):
    folder, cfg, model = written("llama")
    before = (folder / "model.safetensors").read_bytes()
    _, other = model_of("recipe=llama", "model.tied=false", "model.embed_scale=1", "posenc=rope_half", seed=7)
    folders.save(other, cfg, folder)  # its own may be replaced
    assert (folder / "model.safetensors").read_bytes() != before
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(
        UserError, match=r"llama: holds config\.json, model\.safetensors, tokenizer\.json, which was not"
    ):
        folders.save(model, cfg, folder)
    (folder / "tokenizer.json").unlink()
    change_config(transformers_version="5")(folder)  # as transformers would have saved it
    with pytest.raises(UserError, match="which was not written here"):
        folders.save(model, cfg, folder)
    with pytest.raises(UserError, match=r"config\.json: is a file, and the name of a new folder"):
        folders.save(model, cfg, folder / "config.json")
    (tmp_path / "empty").mkdir()
    folders.save(model, cfg, tmp_path / "empty")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "llama"]


def test_a_write_that_fails_leaves_nothing(model_of, tmp_path, monkeypatch):
    cfg, model = model_of("recipe=llama")
    folders.save(model, cfg, tmp_path / "hf")
    before = (tmp_path / "hf" / "model.safetensors").read_bytes()

    def torn(*args, **kwargs):
        raise OSError("disk full")

    rename = Path.replace
    stuck = [
        (folders, "save_file", torn),
        (Path, "replace", lambda path, to: torn() if path.suffix == ".part" else rename(path, to)),
    ]
    for place, name, failing in stuck:
        with monkeypatch.context() as patched:
            patched.setattr(place, name, failing)
            with pytest.raises(UserError, match=r"hf: cannot be written: disk full\."):
                folders.save(model, cfg, tmp_path / "hf")
    assert [path.name for path in tmp_path.iterdir()] == ["hf"]
    assert (tmp_path / "hf" / "model.safetensors").read_bytes() == before
    assert len(list((tmp_path / "hf").iterdir())) == 2


def sharded(folder, **changes):
    """The folder's tensors in three files with an index, in place of one."""
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    weight_map = {name: f"model-{i % 3 + 1:05}-of-00003.safetensors" for i, name in enumerate(tensors)}
    for shard in set(weight_map.values()):
        save_file({name: t for name, t in tensors.items() if weight_map[name] == shard}, folder / shard)
    index = {"metadata": {}, "weight_map": weight_map | changes}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return weight_map


def test_many_files_are_read_as_one(written):
    folder, _, model = written("llama")
    sharded(folder)
    assert alike(folders.load(folder)[1], model)


def test_narrow_types_are_widened_exactly_and_float64_is_rounded(written):
    folder, *_ = written("llama")
    tensors = load_file(folder / "model.safetensors")
    for dtype in (torch.bfloat16, torch.float16, torch.float64):
        save_file({name: t.to(dtype) for name, t in tensors.items()}, folder / "model.safetensors")
        state = folders.load(folder)[1].state_dict()
        assert {t.dtype for t in state.values()} == {torch.float32}
        assert torch.equal(state["embed.weight"], tensors["model.embed_tokens.weight"].to(dtype).float())


def change_tensors(change):
    def bad(folder):
        tensors = load_file(folder / "model.safetensors")
        change(tensors)
        save_file(tensors, folder / "model.safetensors")

    return bad


def change_config(**settings):
    def bad(folder):
        said = json.loads((folder / "config.json").read_text()) | settings
        kept = {key: value for key, value in said.items() if value != "absent"}
        (folder / "config.json").write_text(json.dumps(kept))

    return bad


def tear(name, n=200):
    def bad(folder):
        (folder / name).write_bytes((folder / name).read_bytes()[:-n])

    return bad


def several(tensors):
    del tensors[UP], tensors["model.norm.weight"]
    tensors["model.layers.2.mlp.up_proj.weight"] = torch.zeros(3)
    tensors["lm_head.weight"] = torch.zeros(92, 17)
    tensors["model.layers.1.self_attn.k_proj.weight"] = torch.zeros(8, 16, dtype=torch.int8)


def lost_shard(folder):
    (folder / sharded(folder)[UP]).unlink()


def astray(folder):
    file_of = sharded(folder)
    names = sorted(set(file_of.values()))
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    index["weight_map"][UP] = names[names.index(file_of[UP]) - 1]
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def outside(folder):
    sharded(folder, **{UP: "../model.safetensors"})


def pickled(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


HF = r"llama/"
WEIGHTS, CONFIG = HF + r"model\.safetensors: ", HF + r"config\.json: "
BAD = {
    "missing": (change_tensors(lambda t: t.pop(UP)), [WEIGHTS + UP + r": missing; expected 24 x 16\."]),
    "extra": (change_tensors(lambda t: t.update(more=torch.zeros(2))), [WEIGHTS + r"more: no parameter of the model"]),
    "shape": (
        change_tensors(lambda t: t.update({UP: torch.zeros(24, 17)})),
        [UP + r": is 24 x 17, expected 24 x 16\."],
    ),
    "flat": (change_tensors(lambda t: t.update({UP: torch.zeros(24 * 16)})), [UP + r": is 384, expected 24 x 16\."]),
    "type": (change_tensors(lambda t: t.update({UP: t[UP].to(torch.int8)})), [UP + r": is of type I8\. Choices: F64"]),
    "all at once": (
        change_tensors(several),
        [
            UP + ": missing",
            r"model\.norm\.weight: missing; expected 16\.",
            r"model\.layers\.2\.mlp\.up_proj\.weight: no parameter",
            r"lm_head\.weight: is 92 x 17, expected 92 x 16",
            r"layers\.1\.self_attn\.k_proj\.weight: is of type I8",
        ],
    ),
    "torn": (tear("model.safetensors"), [WEIGHTS + "torn, or no safetensors file"]),
    "torn config": (tear("config.json", 30), [CONFIG + "not a JSON file"]),
    "no config": (lambda folder: (folder / "config.json").unlink(), [CONFIG + "there is no such file"]),
    "no weights": (
        lambda folder: (folder / "model.safetensors").unlink(),
        [r"neither model\.safetensors nor model\.saf"],
    ),
    "pickled": (pickled, [r"pytorch_model\.bin is not read, save it as safetensors"]),
    "a shard lost": (lost_shard, [HF + r"model-0000\d-of-00003\.safetensors: there is no such file"]),
    "a tensor astray": (
        astray,
        [
            HF + rf"model-0000\d-of-00003\.safetensors: {UP}: not in this file",
            rf"{UP}: model\.safetensors\.index.* puts it",
        ],
    ),
    "a shard outside": (outside, [r"index\.json: weight_map must name a file of this folder"]),
    "a list": (
        lambda folder: (folder / "config.json").write_text("[]"),
        [CONFIG + "must be settings below keys, not list"],
    ),
    "experts": (
        change_config(model_type="mixtral"),
        [CONFIG + "model_type=mixtral: there is no part here for experts"],
    ),
    "unknown": (
        change_config(model_type="lama"),
        [r"model_type=lama: how its parts .* Did you mean llama\? Choices: llama"],
    ),
    "no type": (change_config(model_type="absent"), [CONFIG + r"model_type: missing.* Choices: llama, mistral"]),
    "window": (
        change_config(model_type="mistral", sliding_window=8),
        [CONFIG + "sliding_window=8: there is no part for it"],
    ),
    "a window unsaid": (
        change_config(model_type="mistral"),
        [CONFIG + "sliding_window: absent, which means 4096: there is no part for it"],
    ),
    "act": (change_config(hidden_act="relu"), [CONFIG + "hidden_act=relu: there is no part for it"]),
    "quantised": (change_config(quantization_config={"bits": 4}), ["quantization_config: there is no part here"]),
    "unsaid": (change_config(hidden_size="absent"), [CONFIG + "hidden_size: missing, and llama needs it"]),
    "two wrong kinds": (
        change_config(hidden_size="16", rms_norm_eps=0, rope_scaling={"rope_type": "linear", "factor": "two"}),
        [
            "hidden_size='16': must be a whole number",
            "rms_norm_eps=0: must be a number above 0",
            "factor='two': must be",
        ],
    ),
    "experts in some layers": (
        change_config(
            model_type="deepseek_v2",
            first_k_dense_replace=0,
            q_lora_rank=None,
            rms_norm_eps=1e-6,
            qk_nope_head_dim=4,
            v_head_dim=4,
            kv_lora_rank=10,
            qk_rope_head_dim=6,
            head_dim="absent",
            num_key_value_heads=4,
        ),
        [CONFIG + "first_k_dense_replace=0: there are no experts here"],
    ),
    "null": (change_config(num_hidden_layers=None), ["num_hidden_layers=None: must be a whole number, 1 or more"]),
    "heads": (
        change_config(num_key_value_heads=3),
        [CONFIG + r"num_key_value_heads=3: must divide num_attention_heads=4\. Choices: 1, 2, 4"],
    ),
    "rope": (change_config(rope_scaling={"rope_type": "longrope"}), [CONFIG + "rope_type=longrope: there is no part"]),
    "wider": (change_config(vocab_size=93), [r"embed_tokens\.weight: is 92 x 16, expected 93 x 16", r"lm_head"]),
}


@pytest.mark.parametrize("fault", BAD)
def test_what_is_wrong_with_a_folder_is_said(written, fault, monkeypatch):
    """Every line names a file, and no model has been built when it is said."""
    folder, *_ = written("llama")
    change, said = BAD[fault]
    change(folder)
    monkeypatch.setattr(LanguageModel, "load_state_dict", lambda *_, **__: pytest.fail("something was loaded"))
    with pytest.raises(UserError) as e:
        folders.load(folder)
    for text in said:
        assert e.match(text)
    assert all(str(folder) in line for line in str(e.value).splitlines())
    assert len(str(e.value).splitlines()) >= len(said)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match=r"nowhere/config\.json: there is no such folder"):
        folders.load(tmp_path / "nowhere")


def test_a_tied_head_that_is_another_matrix_is_said(written):
    folder, *_ = written("gemma")
    change_tensors(lambda t: t.update({"lm_head.weight": t["model.embed_tokens.weight"] + 1}))(folder)
    with pytest.raises(UserError, match=r"lm_head\.weight is not model\.embed_tokens\.weight"):
        folders.load(folder)


@pytest.mark.parametrize("architecture", ["llama", "gpt2", "gpt_neox"])
def test_names_without_their_first_part_are_read(written, architecture):
    """As the models without a head are kept; GPT-2 was published so."""
    folder, _, model = written(architecture)
    tensors = load_file(folder / "model.safetensors")
    bare = {
        name if name in ("lm_head.weight", "embed_out.weight") else name.partition(".")[2]: t
        for name, t in tensors.items()
    }
    save_file(bare, folder / "model.safetensors")
    assert alike(folders.load(folder)[1], model)


def test_the_head_of_gpt_neox_is_called_what_it_is_on_disk(written):
    folder, _, model = written("gpt_neox")
    assert "lm_head.weight" not in load_file(folder / "model.safetensors")
    change_tensors(lambda t: t.update({"lm_head.weight": t.pop("embed_out.weight")}))(folder)
    assert alike(folders.load(folder)[1], model)  # a name that later versions may come to write
    change_tensors(lambda t: t.pop("lm_head.weight"))(folder)
    with pytest.raises(UserError, match=r"embed_out\.weight: missing; expected 92 x 16"):
        folders.load(folder)


def test_tensors_that_hold_nothing_learned_are_passed_over(written):
    folder, _, model = written("gpt2")
    change_tensors(lambda t: t.update({"transformer.h.0.attn.bias": torch.ones(1, 1, 8, 8)}))(folder)
    assert alike(folders.load(folder)[1], model)


def test_a_digest_is_of_what_is_there_and_not_of_where(written, tmp_path):
    folder, *_ = written("llama")
    one = files.digest(folder)
    folder.rename(tmp_path / "elsewhere")
    assert files.digest(tmp_path / "elsewhere") == one
    change_tensors(lambda t: t[UP].add_(1))(tmp_path / "elsewhere")
    other = files.digest(tmp_path / "elsewhere")
    change_config(rms_norm_eps=1e-3)(tmp_path / "elsewhere")
    assert len({one, other, files.digest(tmp_path / "elsewhere")}) == 3
