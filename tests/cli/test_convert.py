"""`lecture04 convert` as a command: its help is quick, and what is wrong is one sentence. See tests/huggingface."""

import subprocess
import sys


def test_help_needs_no_torch():
    code = (
        "import sys; from lecture04.cli.main import main\n"
        "try: main(['convert', '--help'])\n"
        "except SystemExit as e: assert not e.code\n"
        "assert not {'torch', 'numpy', 'safetensors'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "write" in done.stdout
    assert "read" in done.stdout


def test_a_wrong_folder_ends_the_command_with_the_sentence(tmp_path):
    command = [sys.executable, "-m", "lecture04.cli.main", "convert", "read", "nowhere"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "nowhere/config.json: there is no such folder, so no model lies there.\n"
