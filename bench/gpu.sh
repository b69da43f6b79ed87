#!/usr/bin/env bash
# Everything there is to do on a machine with an NVIDIA GPU: what must hold there is checked, and
# what can be measured is written down as tables, beside PyTorch where python3 has it.
#
#   bench/gpu.sh [--minutes N] [--out DIR] [--python PATH] [--emulate]
#   bench/gpu.sh build DIR
#
# Tables go to docs/measurements/NAME, NAME being the GPU's, or to DIR. It ends after N minutes,
# and a part after its own time: then its table says what is missing. Called again, with the same
# DIR, it goes on: first with the parts that were never begun, then with those that were cut off,
# whose rows are kept in DIR/rows. Nothing is measured twice: to do so, remove the table, and its
# file in DIR/rows. The status is 0 if all is there, 1 if a check or a run of gomem failed, and 2
# if something is missing.
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
  local to small=(-ldflags '-s -w')
  to=$(cd "$1" && pwd)
  cd "$here/.." || exit 1
  export GOOS=linux GOARCH=amd64 CGO_ENABLED=0
  go build "${small[@]}" -o "$to/gpu" ./bench/gpu &&
    go test "${small[@]}" -c -o "$to/device.test" ./internal/device/cuda &&
    go test "${small[@]}" -c -o "$to/ops.test" ./graph/ops &&
    go test "${small[@]}" -c -o "$to/laws.test" ./internal/test/laws &&
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
child=''
trap 'rm -rf "$work"' EXIT
trap '[ -z "$child" ] || kill "$child" 2>/dev/null; wait; exit 143' TERM INT
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
mkdir -p "$out/rows" && out=$(cd "$out" && pwd) || exit 1
exec 9>"$out/rows/.lock" # which what this script has begun holds, too
flock -n 9 || fail "another call, or what is left of one, still writes to $out: wait for its end"
export GOMEM_GPU=1 # tests have this GPU, and emulate none
long=1
[ -z "$emulate" ] || long=''

# waited waits for a command, such that this script hears signals meanwhile.
waited() {
  local status=0
  child=$1
  wait "$child" || status=$?
  child=''
  return $status
}

# left is how many seconds there are for a part that may take so many: those of this call, less
# some in which to end. It fails if they are none.
left() {
  local rest=$((minutes * 60 - SECONDS - 15))
  [ $rest -lt "$1" ] || rest=$1
  [ $rest -gt 0 ] && echo $rest
}

# check runs a test for so many seconds, or three quarters of a call. That a call ends first is
# no result.
check() {
  local what=$1 limit=$2 rest status=0 began=$SECONDS result=passed
  shift 2
  ! grep -qF "| $what |" "$out/checks.md" || return
  lacks+=("$what")
  [ "$limit" -lt $((minutes * 45)) ] || limit=$((minutes * 45))
  rest=$(left "$limit") || return
  (cd "$work" && GOMEM_LONG=$long exec timeout -k 10 "$rest" "$@") >"$work/log" 2>&1 &
  waited $! || status=$?
  case $status in
  0) ;;
  124 | 137)
    [ "$rest" -eq "$limit" ] || return
    result="cut off after $limit s"
    ;;
  *)
    result="**failed**, status $status"
    tail -n 40 "$work/log" >&2
    ;;
  esac
  checked "$what" "$result" $((SECONDS - began))
}

# checked writes down a result.
checked() {
  printf '| %s | %s | %s |\n' "$@" | tee -a "$out/checks.md"
  unset 'lacks[-1]'
}

# sanitized is a check by a tool of compute-sanitizer.
sanitized() {
  if [ -n "$sanitizer" ]; then
    check "$1" 400 "$sanitizer" --tool "$1" --error-exitcode 9 \
      "$bin/ops.test" -test.run '^TestCUDAMatchesCPU$'
  elif ! grep -qF "| $1 |" "$out/checks.md"; then
    lacks+=("$1")
    checked "$1" 'compute-sanitizer is not installed' ''
  fi
}

# whole is a table from which nothing is missing.
whole() { [ -f "$1" ] && ! grep -qE '^Not (complete|measured, for want of time):' "$1"; }

# measure makes a table for so many seconds: first if there is none, then if it is not whole.
measure() {
  local phase=$1 table=$out/$1.md rest status=0
  ! whole "$table" || return
  lacks+=("$phase")
  [ $pass = again ] || [ ! -f "$table" ] || return
  rest=$(left "$2") || return
  printf '== %s\n' "$phase"
  timeout -k 10 $((rest + 10)) "$bin/gpu" $emulate -python "$python" -seconds "$rest" \
    -rows "$out/rows/$phase" "$phase" >"$work/table" &
  waited $! || status=$?
  if [ $status -ne 0 ] && ! grep -q '^Failed:' "$work/table"; then
    printf '\nNot complete: it ended with status %d.\n' $status >>"$work/table"
  fi
  cat "$work/table"
  cp "$work/table" "$table.new" && mv "$table.new" "$table"
  ! whole "$table" || unset 'lacks[-1]'
}

ops='^TestCUDA(MatchesCPU|Specials|Bits|Sizes|Chains.*|DependsOn.*|InPlace|Conversions|InBF16)$'
law='^Test(Perceptron|PlansDoNotAffectResults|CUDAGraphs)OnGPU$' models='^TestModelsOnGPU$'
if [ -n "$emulate" ]; then
  ops='^TestCUDA(Specials|Sizes)$' law='^TestPerceptronOnGPU$' models='^TestShareGPUs$'
fi
sanitizer=$(PATH=$PATH:/usr/local/cuda/bin command -v compute-sanitizer)
[ -z "$emulate" ] || sanitizer=''
if [ ! -f "$out/checks.md" ]; then
  {
    printf '# Checks\n\n'
    [ -z "$emulate" ] ||
      printf '**On an emulator of a GPU, which runs on the processor.**\n\n'
    printf '`bench/gpu.sh`, %s.\n\n| check | result | s |\n|---|---|---:|\n' "$name"
  } >"$out/checks.md"
fi
for pass in begin again; do # the most telling parts first
  lacks=()
  check 'what a device must do' 60 "$bin/device.test" -test.run '^Test(Device|Replay)$'
  check 'operations beside the processor' 240 "$bin/ops.test" -test.run "$ops"
  measure links 40
  measure products 60
  measure kernels 120
  check 'plans and the processor' 240 "$bin/laws.test" -test.run "$law"
  measure models 450
  check 'ten steps of every model' 300 "$bin/laws.test" -test.run "$models"
  measure largest 450
  measure precisions 450
  sanitized memcheck
  sanitized racecheck
done
printf 'tables are in %s\n' "$out"
if [ ${#lacks[@]} -gt 0 ]; then
  printf -v list '%s, ' "${lacks[@]}"
  printf 'missing: %s: the same command goes on\n' "${list%, }"
  exit 2
fi
! grep -qE '^Failed:|\*\*failed\*\*' "$out"/*.md
