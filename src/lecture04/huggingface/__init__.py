"""Models of Hugging Face's architectures as ours, and ours as theirs: configs and parameters, pure functions.

their = ARCHITECTURES["llama"]
cfg = their.read_config(config_json, base)        their.write_config(cfg)
ours = read_state(their.table, state_dict, cfg)   write_state(their.table, ours, cfg)
"""

from lecture04.huggingface import deepseek, gpt, llama
from lecture04.huggingface.mapping import read_state, write_state
from lecture04.huggingface.settings import Architecture

ARCHITECTURES: dict[str, Architecture] = {
    a.model_type: a for a in (*llama.ARCHITECTURES, *gpt.ARCHITECTURES, *deepseek.ARCHITECTURES)
}

__all__ = ["ARCHITECTURES", "Architecture", "read_state", "write_state"]
