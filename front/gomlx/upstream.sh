#!/usr/bin/env bash
# Runs GoMLX's own tests of the version that go.mod names on this backend, but those that
# upstream.txt has: of packages ./pkg/core/... and ./pkg/ml/..., or those given. GOMLX_BACKEND
# configures it. The package of XLA's backend, which those tests ask for, is replaced by one that
# has this backend instead, in a copy of GoMLX.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go mod download github.com/gomlx/gomlx
cp -r "$(go list -m -f '{{.Dir}}' github.com/gomlx/gomlx)" "$work/gomlx"
chmod -R u+w "$work/gomlx"
rm -r "$work/gomlx/backends/xla"
mkdir "$work/gomlx/backends/xla"
cat >"$work/gomlx/backends/xla/xla.go" <<'GO'
package xla

import _ "github.com/gomem/gomem/front/gomlx"

func AutoInstall() error { return nil }
GO
printf 'go 1.26.0\nuse %s\nuse %s\n' "$work/gomlx" "$PWD" >"$work/go.work"
skip=$(grep -v '^#' upstream.txt | paste -sd'|')
cd "$work/gomlx"
[ $# -gt 0 ] || set -- ./pkg/core/... ./pkg/ml/...
export GOWORK=$work/go.work GOMLX_BACKEND=${GOMLX_BACKEND:-gomem}
go test -timeout 30m -skip "$skip" "$@" | grep -v 'no test files'
