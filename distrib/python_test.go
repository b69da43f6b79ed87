package distrib_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"testing"
)

// askPython runs a script of Debian's Python, which has PyTorch where python3-torch is
// installed, with a value as JSON, and reads its answer. The test is skipped where it is
// not.
func askPython(t *testing.T, script string, in, out any) {
	t.Helper()
	const python, missing = "/usr/bin/python3", 77
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	const head = `import json, sys
try:
    import torch
except ImportError:
    sys.exit(77)
x = json.load(sys.stdin)
`
	cmd := exec.Command(python, "-c", head+script)
	cmd.Stdin = bytes.NewReader(text)
	var failure bytes.Buffer
	cmd.Stderr = &failure
	answer, err := cmd.Output()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() == missing {
		t.Skip("no PyTorch for ", python)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, failure.String())
	}
	if err := json.Unmarshal(answer, out); err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
}
