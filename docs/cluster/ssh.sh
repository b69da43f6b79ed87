#!/bin/bash
# A worker on each of some hosts, by ssh alone. The token goes through ssh, not through
# arguments; the first host has rank 0. What ends with an error ends the others.
#
#   docs/cluster/ssh.sh node0 node1 node2 -- train --model transformer --save run
set -euo pipefail
hosts=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do hosts+=("$1"); shift; done
[ $# -gt 1 ] && [ ${#hosts[@]} -gt 0 ] || { sed -n '2,5p' "$0" >&2; exit 2; }
shift
ssh="${SSH:-ssh -o BatchMode=yes}" gomem="${GOMEM:-gomem-cluster}"
printf -v args '%q ' "$@"
start() { # rank host
  exec $ssh "$2" "umask 077; mkdir -p .gomem
export RANK=$1 WORLD_SIZE=${#hosts[@]} MASTER_ADDR=${hosts[0]} GOMEM_TOKEN_FILE=.gomem/token-$$
trap 'rm -f .gomem/token-$$' EXIT
[ $1 = 0 ] || cat >.gomem/token-$$
$gomem $args"
}
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
start 0 "${hosts[0]}" </dev/null &
for rank in $(seq 1 $((${#hosts[@]} - 1))); do
  # rank 0 writes the token as soon as it listens; it is read there and written here
  { until $ssh "${hosts[0]}" "cat .gomem/token-$$ 2>/dev/null"; do sleep 0.2; done; } |
    start "$rank" "${hosts[$rank]}" &
done
status=0
for _ in "${hosts[@]}"; do wait -n || status=$?; [ $status = 0 ] || break; done
exit $status
