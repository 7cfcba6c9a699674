"""Models of Hugging Face's architectures as ours, and ours as theirs: configs and parameters, pure functions.

    their = ARCHITECTURES["llama"]
    c = their.read_config(config_json)                their.write_config(c)
    ours = read_state(their.table, state_dict, c)     write_state(their.table, ours, c)

`c` is a `config.Architecture`. Folders are read and written in files.py and folders.py, for `lecture04 convert` and for
runs that start from one (init.folder).
"""

from lecture04.huggingface import deepseek, gpt, llama
from lecture04.huggingface.mapping import read_state, write_state
from lecture04.huggingface.settings import Conversion

ARCHITECTURES: dict[str, Conversion] = {
    each.model_type: each for each in (*llama.ARCHITECTURES, *gpt.ARCHITECTURES, *deepseek.ARCHITECTURES)
}

__all__ = ["ARCHITECTURES", "Conversion", "read_state", "write_state"]
