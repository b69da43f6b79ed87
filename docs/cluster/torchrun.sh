#!/bin/bash
# One worker, under whatever sets torchrun's variables: run it on every node.
#
#   RANK=0 WORLD_SIZE=2 MASTER_ADDR=node0 MASTER_PORT=29400 docs/cluster/torchrun.sh
#   RANK=1 WORLD_SIZE=2 MASTER_ADDR=node0 MASTER_PORT=29400 docs/cluster/torchrun.sh
#
# torchrun itself starts programs that are not Python, too:
#
#   torchrun --no-python --nnodes 2 --node-rank 0 --master-addr node0 docs/cluster/torchrun.sh
set -euo pipefail
: "${RANK:?}" "${WORLD_SIZE:?}" "${MASTER_ADDR:?}"
export GOMEM_TOKEN_FILE="${GOMEM_TOKEN_FILE:-$HOME/gomem/token}" # on a directory of all nodes
exec "${GOMEM:-gomem-cluster}" "${@:-train}"
