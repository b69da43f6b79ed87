package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gomem/gomem/internal/longtest"
)

// patient is how long a refusal may take before it counts as a hang.
const patient = time.Minute

// refuse runs a command line in a process of its own, within 4GiB of addresses,
// and demands that it is refused as misuse, in one line that names what is wrong.
func refuse(t *testing.T, want string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	c := exec.CommandContext(ctx, os.Args[0], args...)
	if runtime.GOOS == "linux" {
		c = exec.CommandContext(ctx, "sh", append([]string{"-c",
			`ulimit -v 4194304; exec "$0" "$@"`, os.Args[0]}, args...)...)
	}
	c.Env = append(os.Environ(), asCommand+"=1")
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	exit, ok := errors.AsType[*exec.ExitError](err)
	said := stderr.String()
	if !ok || exit.ExitCode() != exitUsage || stdout.Len() > 0 ||
		strings.Count(said, "\n") != 1 || !strings.Contains(said, want) {
		t.Errorf("gomem %s: %v, want status 2 and one line with %s; standard error %.300q",
			strings.Join(args, " "), err, want, said)
	}
}

// TestAbsurdNumbers: no number of no flag hangs, takes the machine's memory or
// goes on as something else; the flag is named.
func TestAbsurdNumbers(t *testing.T) {
	longtest.Skip(t)
	counts := []string{"-1", "0", "1.5", "1e30", "NaN", "2147483647", "9223372036854775808", "",
		"x"}
	numbers := []string{"-1", "0", "1e300", "-1e300", "NaN", "Inf", "-Inf", "", "x"}
	sizes := []string{"-1", "0", "1e30", "NaN", "99999999999TiB", "16EiB", "9223372036854775807",
		"9223372036854775808", "-1GiB", "", "lots"}
	train := "train --size s512 --data tsv:pairs.tsv --steps 1"
	for _, c := range []struct {
		command, flags string
		values         []string
	}{
		{"train --size s512 --data tsv:pairs.tsv", "steps", counts},
		{train, "eval-every eval-batches save-every threads", counts},
		{train, "bleu", append([]string{}, "-1", "1.5", "1e30", "2147483647", "")},
		{train, "partition lookahead streams", counts},
		{train, "copy-gbps", append([]string{"1e-300", "1e-9", "1e10"}, numbers...)},
		{"train --size s512 --data tsv:pairs.tsv", "epochs", append([]string{"1e6"}, numbers...)},
		{train, "seed", []string{"-1", "1.5", "1e30", "18446744073709551616", ""}},
		{train, "device-memory host-memory", sizes},
		{"plan", "batch length depth experts expert-hidden", counts},
		{"plan --model transformer", "batch length depth", counts},
		{"plan --model gpt", "batch length depth", counts},
		{"plan --model resnet", "batch pixels depth", counts},
		{"plan --model wgan", "batch pixels", counts},
		{"plan --model deepspeech", "batch length", counts},
		{"plan --model resnet", "blocks", []string{"0,1,1,1", "1,1,1,-1", "1,1,1,2147483647",
			"1,1,1,9223372036854775808", "1,1,1", "NaN,1,1,1", "16384,1,1,1"}},
		{"plan", "device-memory host-memory", sizes},
		{"plan --sweep", "points", append([]string{"1001"}, counts...)},
		{"bench thesis --table 6.1", "runs", counts},
		{"bench thesis --table 6.1", "copy-gbps", numbers},
	} {
		for flag := range strings.FieldsSeq(c.flags) {
			t.Run(c.command+" --"+flag, func(t *testing.T) {
				inDir(t)
				for _, value := range longtest.Some(5, c.values) {
					refuse(t, "--"+flag, append(strings.Fields(c.command), "--"+flag, value)...)
				}
			})
		}
	}
}

// TestAbsurdProducts: flags that are possible alone can be absurd together.
func TestAbsurdProducts(t *testing.T) {
	for _, line := range []string{
		"plan --batch 1048576 --length 65536",
		"plan --model transformer --batch 1048576 --length 65536",
		"plan --model resnet --batch 1048576 --pixels 16384",
		"plan --model wgan --batch 1048576 --pixels 16384",
	} {
		refuse(t, "--batch times --", strings.Fields(line)...)
	}
}

// TestScheduler: threads beyond reason are not started for the asking.
func TestScheduler(t *testing.T) {
	before := runtime.GOMAXPROCS(maxThreads + 1)
	defer runtime.GOMAXPROCS(before)
	succeed(t, "version")
	if n := runtime.GOMAXPROCS(0); n > max(maxThreads, runtime.NumCPU()) {
		t.Errorf("GOMAXPROCS stays %d", n)
	}
	if out := fmt.Sprint(runtime.GOMAXPROCS(0)); !strings.Contains(succeed(t, "devices"), out) {
		t.Errorf("devices does not say %s threads", out)
	}
}
