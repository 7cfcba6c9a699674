"""DeepSeek-V2 and -V3: multi-head latent attention with decoupled RoPE, and YaRN's temperature on the scores."""

from dataclasses import replace

import pytest

from lecture04.nn.mla import LatentAttention

DEEPSEEK = {
    "num_key_value_heads": 4,
    "q_lora_rank": None,
    "kv_lora_rank": 10,
    "qk_nope_head_dim": 4,
    "qk_rope_head_dim": 6,
    "v_head_dim": 4,
    "first_k_dense_replace": 2,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 10_000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 8,
    "beta_fast": 4.0,
    "beta_slow": 0.25,
}
BOTH = pytest.mark.parametrize("version", ["deepseek_v2", "deepseek_v3"])
TITLE = {"deepseek_v2": "DeepSeek-V2", "deepseek_v3": "DeepSeek-V3"}


@BOTH
def test_deepseek(hold, version):
    hold(TITLE[version], version, remark="MLA, decoupled RoPE on interleaved pairs; dense layers alone", **DEEPSEEK)


@BOTH
def test_deepseek_in_halves(hold, version):
    hold(f"{TITLE[version]}, read into halves", version, posenc="rope_half", **DEEPSEEK)


@BOTH
@pytest.mark.parametrize("mscale", [None, 1.0, 0.707])
def test_deepseek_with_yarn(hold, version, mscale):
    rope = YARN if mscale is None else {**YARN, "mscale": mscale, "mscale_all_dim": mscale}
    remark = "factor on the rotated dimensions" if mscale is None else "factor on all scores"
    hold(f"{TITLE[version]}, YaRN, mscale {mscale}", version, remark=remark, rope_parameters=rope, **DEEPSEEK)


def with_scaling(cfg, **changes):
    return replace(cfg, posenc=replace(cfg.posenc, scaling=replace(cfg.posenc.scaling, **changes)))


FAULTS = {
    "the scale of d_head alone": lambda cfg: replace(cfg, attention=replace(cfg.attention, scale=0.5)),
    "a wrong base": lambda cfg: replace(cfg, posenc=replace(cfg.posenc, base=9999.0)),
    "no rotation": lambda cfg: replace(cfg, posenc=replace(cfg.posenc, name="none")),
    "the factor on the rotated part alone": lambda cfg: with_scaling(cfg, on_scores=False),
    "a mask that leaks": lambda cfg: replace(cfg, attention=replace(cfg.attention, causal=False)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_deepseek_is_caught(is_caught, fault):
    rope = {**YARN, "mscale": 1.0, "mscale_all_dim": 1.0}
    is_caught("deepseek_v3", FAULTS[fault], rope_parameters=rope, **DEEPSEEK)


def test_a_latent_that_is_not_as_it_was_normalised_is_caught(is_caught, monkeypatch):
    right = LatentAttention.restored

    def planted(cfg):
        def restored(self, q_BHTK, q_BHTR, c_B1SL, r_B1SR, sight):
            return right(self, q_BHTK, q_BHTR, 1.001 * c_B1SL, r_B1SR, sight)

        monkeypatch.setattr(LatentAttention, "restored", restored)
        return cfg

    is_caught("deepseek_v2", planted, **DEEPSEEK)
