#!/usr/bin/env bash
# Everything there is to do on a machine with an NVIDIA GPU: what must hold there is checked, and
# what can be measured is written down as tables, beside PyTorch where python3 has it.
#
#   bench/gpu.sh [--minutes N] [--out DIR] [--python PATH] [--emulate]
#   bench/gpu.sh build DIR
#
# Tables go to docs/measurements/NAME, NAME being the GPU's, or to DIR. The time is shared out: a
# part that does not end in its own is cut off, and its table says what is missing. Checks that
# fail are listed, and make the status 1 in the end.
#
# build puts this script and all that it runs into a folder, for a machine without Go: there,
# DIR/gpu.sh is the same command. --emulate runs all of it, small, on an emulated GPU, which
# g++ builds: its tables say so, and measure nothing.
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
minutes=60 out='' python=python3 emulate=''

fail() {
  printf 'gpu.sh: %s\n' "$*" >&2
  exit 1
}

build() {
  mkdir -p "$1" || exit 1
  local to
  to=$(cd "$1" && pwd)
  cd "$here/.." || exit 1
  export GOOS=linux GOARCH=amd64 CGO_ENABLED=0
  go build -o "$to/gpu" ./bench/gpu &&
    go test -c -o "$to/device.test" ./internal/device/cuda &&
    go test -c -o "$to/ops.test" ./graph/ops &&
    go test -c -o "$to/laws.test" ./internal/test/laws &&
    cp "$here/gpu.sh" "$to/"
}

if [ "${1:-}" = build ]; then
  [ $# -eq 2 ] || fail 'want build DIR'
  build "$2"
  exit
fi
while [ $# -gt 0 ]; do
  case $1 in
  --emulate) emulate=-emulate ;;
  --minutes | --out | --python)
    [ $# -gt 1 ] || fail "$1 wants a value"
    case $1 in
    --minutes) minutes=$2 ;;
    --out) out=$2 ;;
    --python) python=$2 ;;
    esac
    shift
    ;;
  *) fail "unknown argument $1" ;;
  esac
  shift
done
case $minutes in
'' | *[!0-9]* | 0*) fail "--minutes $minutes: want a whole number from 1" ;;
esac

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
bin=$here
if [ ! -f "$bin/gpu" ]; then # next to the script in the project it is a folder
  command -v go >/dev/null || fail "no Go here: make $here by 'bench/gpu.sh build DIR' elsewhere"
  bin=$work/bin
  (build "$bin") || exit 1
fi

gpu() { "$bin/gpu" $emulate -python "$python" "$@"; }
name=$(gpu name) || exit 1
if [ -n "$emulate" ]; then
  EMU_DIR=$(gpu emulator) || exit 1
  export EMU_DIR GOMEM_CUDA_PATH=$EMU_DIR XDG_CACHE_HOME=$EMU_DIR/cache
  out=${out:-$(mktemp -d)/$name}
elif [ -z "$out" ]; then
  out=$name
  [ -d "$here/../docs/measurements" ] && out=$here/../docs/measurements/$name
fi
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 1
export GOMEM_GPU=1 # tests have this GPU, and emulate none
long=1 failed=0
[ -z "$emulate" ] || long=''

# share is so many hundredths of the time, in seconds.
share() { echo $((minutes * 60 * $1 / 100)); }

# check runs a test within so many hundredths of the time.
check() {
  local what=$1 limit status=0 began=$SECONDS result
  limit=$(share "$2")
  shift 2
  (cd "$work" && GOMEM_LONG=$long timeout -k 10 "$limit" "$@") >"$work/log" 2>&1 || status=$?
  case $status in
  0) result=passed ;;
  124 | 137) result="cut off after $limit s" ;;
  *) result="**failed**, status $status" ;;
  esac
  printf '| %s | %s | %d |\n' "$what" "$result" $((SECONDS - began)) | tee -a "$out/checks.md"
  if [ $status -ne 0 ]; then
    failed=1
    tail -n 40 "$work/log" >&2
  fi
}

# measure makes a table within so many hundredths of the time.
measure() {
  local phase=$1 limit status=0
  limit=$(share "$2")
  printf '== %s\n' "$phase"
  timeout -k 10 $((limit + limit / 2 + 60)) "$bin/gpu" $emulate \
    -python "$python" -seconds "$limit" "$phase" >"$out/$phase.md" || status=$?
  if [ $status -ne 0 ]; then
    failed=1
    printf '\nNot complete: it ended with status %d.\n' $status >>"$out/$phase.md"
  fi
  cat "$out/$phase.md"
}

{
  printf '# Checks\n\n'
  [ -z "$emulate" ] ||
    printf '**On an emulator of a GPU, which runs on the processor.**\n\n'
  printf '`bench/gpu.sh`, %s.\n\n| check | result | s |\n|---|---|---:|\n' "$name"
} >"$out/checks.md"
ops='^TestCUDA(MatchesCPU|Specials|Bits|Sizes|Chains.*|DependsOn.*|InPlace|Conversions|InBF16)$'
law='^Test(Perceptron|Models|PlansDoNotAffectResults|CUDAGraphs)OnGPU$'
if [ -n "$emulate" ]; then
  ops='^TestCUDA(Specials|Sizes)$' law='^TestPerceptronOnGPU$'
fi
check 'what a device must do' 4 "$bin/device.test" -test.run '^Test(Device|Replay)$'
check 'operations beside the processor' 8 "$bin/ops.test" -test.run "$ops"
check 'ten steps, plans and the processor' 14 "$bin/laws.test" -test.run "$law"
sanitizer=$(PATH=$PATH:/usr/local/cuda/bin command -v compute-sanitizer)
if [ -n "$emulate" ] || [ -z "$sanitizer" ]; then
  echo '| compute-sanitizer | not installed: left out | |' | tee -a "$out/checks.md"
else
  for tool in memcheck racecheck; do
    check "$tool" 6 "$sanitizer" --tool $tool --error-exitcode 9 \
      "$bin/ops.test" -test.run '^TestCUDAMatchesCPU$'
  done
fi
measure links 2
measure products 4
measure models 30
measure precisions 12
measure largest 14
printf 'tables are in %s\n' "$out"
exit $failed
