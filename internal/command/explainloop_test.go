package command

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestExplainLoop: each example has its schedule, dimensions that are asked for are taken, and both
// forms say the same.
func TestExplainLoop(t *testing.T) {
	inDir(t)
	write(t, "loop.yaml", "space: [i 8]\narrays: [{name: A, shape: [8]}]\nbody: ['write A[i]']\n")
	for args, want := range map[string][2]string{
		"":                                {"2D without an order (rotation)", "item"},
		"--space user":                    {"2D without an order (rotation)", "user"},
		"--ordered":                       {"2D with an order (wavefront)", "item"},
		"--nonzeros 5000":                 {"2D without an order (rotation)", "item"},
		"--loop lda":                      {"2D without an order (rotation)", "word"},
		"--loop lr":                       {"data parallel", "sample"},
		"--loop stencil":                  {"2D with an order (wavefront)", "column"},
		"--loop skewed":                   {"unimodular, then a wavefront", "row"},
		"--loop loop.yaml":                {"1D", "i"},
		"--loop ./loop.yaml --workers 99": {"1D", "i"},
	} {
		run := with([]string{"explain-loop"}, strings.Fields(args)...)
		var x struct {
			Type, Schedule string
			Space          struct{ By string }
			Blocks         [][]struct{}
		}
		if err := json.Unmarshal([]byte(succeed(t, with(run, "--json")...)), &x); err != nil ||
			x.Type != "loop" || x.Schedule != want[0] || x.Space.By != want[1] {
			t.Errorf("%s: %+v, %v", args, x, err)
		}
		text := succeed(t, run...)
		if !strings.Contains(text, "schedule   "+want[0]+", space "+want[1]+" in") ||
			!strings.Contains(text, "\nworker 0  ") {
			t.Errorf("%s: %s", args, text)
		}
	}
}

// TestCheckLoop: each example, and a loop of one's own, leaves the bits of the serial order.
func TestCheckLoop(t *testing.T) {
	inDir(t)
	write(t, "loop.yaml", "space: [i 8]\narrays: [{name: A, shape: [8]}]\nbody: ['write A[i]']\n")
	for _, args := range []string{"--nonzeros 3000", "--nonzeros 3000 --ordered",
		"--loop lda --nonzeros 3000 --workers 3", "--loop lr", "--loop stencil", "--loop skewed",
		"--loop loop.yaml"} {
		run := with([]string{"explain-loop", "--check"}, strings.Fields(args)...)
		var x struct {
			Check struct {
				Of         string
				Iterations int
				Apart      bool
			}
		}
		err := json.Unmarshal([]byte(succeed(t, with(run, "--json")...)), &x)
		factors := !strings.Contains(args, "--loop")
		if err != nil || x.Check.Iterations < 8 || !x.Check.Apart ||
			strings.Contains(x.Check.Of, "SGD") != factors {
			t.Errorf("%s: %+v, %v", args, x, err)
		}
	}
	if text := succeed(t, "explain-loop", "--check", "--loop", "lr"); !strings.Contains(text,
		"checked    hashes of what was read, 10,000 iterations: no use is undeclared") {
		t.Error(text)
	}
}

// TestBadExplainLoop: what cannot be explained is refused, each in a line.
func TestBadExplainLoop(t *testing.T) {
	inDir(t)
	for name, text := range map[string]string{"bad.yaml": "space: [", "few.yaml": "space: [i 8]\n",
		"two.yaml": "space: [i 8]\n---\nspace: [i 8]\n", "none.yaml": "",
		"many.yaml": "space: [i 9999999]\narrays: [{name: A, shape: [8]}]\nbody: ['write A[0]']\n",
		"vast.yaml": "space: [i 9]\narrays: [{name: A, shape: [99999999]}]\nbody: ['read A[i]']\n",
		"busy.yaml": "space: [i 99999]\narrays: [{name: A, shape: [99999]}]\nbody: ['read A[:]']\n",
	} {
		write(t, name, text)
	}
	for args, want := range map[string]string{
		"--loop mlp":                   "want gbt, lda, lr, mf, skewed, stencil, or",
		"--loop bad.yaml":              "bad.yaml is neither YAML nor JSON",
		"--loop few.yaml":              "few.yaml: 0 references to arrays",
		"--loop none.yaml":             "none.yaml: a loop of 0 dimensions",
		"--loop two.yaml":              "two.yaml: want one loop",
		"--loop not.yaml":              "no such file",
		"--loop /dev/zero":             "not a regular file",
		"--check --loop many.yaml":     "than a million iterations: draw some by --nonzeros",
		"--check --loop vast.yaml":     "arrays are too large to try it",
		"--check --loop busy.yaml":     "uses too many elements to try it",
		"--workers 0":                  "--workers",
		"--workers 257":                "mf: 257 workers: want 1 to 256",
		"--space k":                    `no dimension "k": want user, item`,
		"--space user --time user":     "space and time are both user",
		"--loop skewed --space column": "the loop cannot be divided by space column",
		"--nonzeros 300000":            "no more than half of the loop's space",
	} {
		o := invoke(t, with([]string{"explain-loop"}, strings.Fields(args)...)...)
		if o.status == exitOK || !strings.Contains(o.stderr, want) ||
			strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%s: %d, %q, want %q", args, o.status, o.stderr, want)
		}
	}
}
