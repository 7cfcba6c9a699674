#!/usr/bin/env bash
# Builds the wheel, installs it into an empty environment and uses it from empty folders, as someone does who never saw
# the repository: a small sweep of our parts, then a new project and the comparison of its own part.
# tools/try_wheel.sh [FOLDER]: works in FOLDER and leaves it there; without one, in a folder that is removed.
set -euo pipefail
repository=$(cd "$(dirname "$0")/.." && pwd)
work=${1:-$(mktemp -d)}
[ $# -gt 0 ] || trap 'rm -rf "$work"' EXIT
mkdir -p "$work"
work=$(cd "$work" && pwd)
unset PYTHONPATH # of the caller's own Lecture04
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore WANDB_MODE=disabled
small="trainer.steps=20 trainer.diverged_margin=-9 trainer.batch_size=8 data.n_train=80 data.n_val=20 data.n_test=40"

"${PYTHON:-python3}" -m venv "$work/venv"
"$work/venv/bin/pip" wheel --quiet --no-deps --wheel-dir "$work/dist" "$repository"
"$work/venv/bin/pip" install --quiet --constraint "$repository/constraints.txt" "$work"/dist/lecture04-*.whl
export PATH="$work/venv/bin:$PATH"

step() { printf '\n== %s\n' "$*"; }
fail() { echo "try_wheel: $*" >&2; exit 1; }

mkdir "$work/empty"
cd "$work/empty"
step lecture04 --help
lecture04 --help
step lecture04 train ffn=swiglu -m seed=0,1
# shellcheck disable=SC2086 # the words of $small are arguments
lecture04 train ffn=swiglu -m seed=0,1 logger=none $small
[ "$(ls outputs/runs | wc -l)" = 2 ] || fail "two runs were asked for"
lecture04 report > report.txt
grep -q '^swiglu' report.txt || fail "the table does not come again from its records"
! grep -rl --include='*.json' --include='*.md' 'python train.py' outputs || fail "there is no train.py here"

step lecture04 new mine
lecture04 new "$work/mine"
! lecture04 new "$work/mine" 2> refused.txt || fail "a folder that holds files is written into"
grep 'holds files' refused.txt
cd "$work/mine"
step lecture04 train -m sweeps=mine
# shellcheck disable=SC2086
lecture04 train -m sweeps=mine seed=0,1 logger=none $small
grep -q '^| Mine' outputs/sweeps/mine*/table.md || fail "the table has no row for the project's own part"
[ "$(ls outputs/runs | wc -l)" = 6 ] || fail "three rows of two seeds were asked for"
step make check
make check
