#!/usr/bin/env bash
# Everything that is measured of one GPU, in at most 8 minutes, into one folder of JSON:
#
#   benchmarks/gpu.sh FOLDER
#
# Machine; decode, verify and prefill curves of a dense 8B model; verify attention over a cached prefix with group
# sizes 1, 4 and 8; a mixture of experts; a drafter that fits into L2; speculation with forced acceptance. Weights
# are random, so nothing is fetched. Where there is no GPU the same steps run on small models on one CPU core.
# A step that was cut off by the time limit (LIMIT_S, default 480) or killed continues when the script is run again.
set -euo pipefail

OUT=${1:?usage: benchmarks/gpu.sh FOLDER}
LIMIT_S=${LIMIT_S:-480}
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PYTHON=${PYTHON:-$HERE/../.venv/bin/python}
START=$SECONDS
mkdir -p "$OUT"

if "$PYTHON" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then
  DEVICE=cuda SMALL=() ROUNDS=20
  CURVE=(--batch 1,8,64 --positions 1,2,3,4,5,6,8,9,12,16,24,32,64 --context 128,2048,8192 --prefill 128,512,2048)
  PREFIX=(--batch 1,16,64 --positions 1,2,4,8,16,32 --context 512,4096,16384 --prefill 0)
  MACHINE=()
else
  DEVICE=cpu SMALL=(--small) ROUNDS=5
  CURVE=(--batch 1,2,4 --positions 1,2,4,8,16 --context 16,128,512 --prefill 16,64)
  PREFIX=(--batch 1,4 --positions 1,4,8 --context 64,512 --prefill 0)
  MACHINE=(--stream "256 MiB" --gemm 512)
fi
echo "device: $DEVICE, into $OUT"
"$PYTHON" "$HERE/gpu_configs.py" "$OUT/configs" "${SMALL[@]}"

failed=0
# step FILE COMMAND...: run it unless its file is there, for as long as is left.
step() {
  local file=$OUT/$1 left=$((LIMIT_S - (SECONDS - START)))
  shift
  if [[ -e $file ]]; then echo "kept $file"; return; fi
  if ((left < 10)); then echo "no time left for $file: run it again to continue"; failed=1; return; fi
  timeout "$left" "$PYTHON" -m rooflines measure "$@" --device "$DEVICE" --output "$file" || {
    echo "not finished: $file (run it again to continue)"
    failed=1
  }
}

decode() { step "$1.json" decode --model "$OUT/configs/$1.json" --rounds "$ROUNDS" "${@:2}"; }

step machine.toml machine --rounds "$ROUNDS" "${MACHINE[@]}"
decode dense "${CURVE[@]}"
step speculation.json speculation --model "$OUT/configs/dense.json" --prompts random:128 --tokens 64 \
  --draft-length 2,4,8 --drafter forced:0.5 --drafter forced:0.8 --drafter forced:0.95
for group in 1 4 8; do decode "attention-g$group" "${PREFIX[@]}"; done
decode drafter "${CURVE[@]}"
# Transformers runs the mixture of experts: no early exits, no copy, whole passes only.
decode moe --batch 1,4,16 --positions 1,2,4,8,16,32 --context 128 --prefill 128

echo "$((SECONDS - START)) s; $(find "$OUT" -maxdepth 1 -name '*.json' | wc -l) files of measurements in $OUT"
exit "$failed"
