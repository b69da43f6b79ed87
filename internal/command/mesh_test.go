package command

import (
	"fmt"
	"strings"
	"testing"
)

// TestMeshFlags: what cannot be divided is refused in a line that names the flag.
func TestMeshFlags(t *testing.T) {
	inDir(t)
	for _, c := range []struct {
		line, why string
	}{
		{"plan --size s512 --mesh batch", "--mesh batch: "},
		{"plan --size s512 --mesh batch:0", "out of range"},
		{"plan --size s512 --mesh batch:2x2", "--mesh batch:2x2: mesh batch:2x2 is for 2 proc"},
		{"plan --size s512 --mesh batch:3", "which the 3 of axis batch of the mesh do not " +
			"divide: 2 and 4 do"},
		{"train --size s512 --data tsv:pairs.tsv --steps 1 --mesh batch:3", "--mesh batch:3: "},
		{"plan --size s512 --mesh rows:2", "an axis rows: there are batch, experts, length"},
		{"plan --size s512 --mesh batch:2 --layout batch=rows", "--layout batch=rows: "},
		{"plan --size s512 --mesh batch:2 --layout */nothing:1=batch", "has such a name"},
		{"plan --size s512 --mesh batch:2 --layout source:2=batch", "has no axis 2"},
		{"plan --size s512 --layout batch=batch", "--layout needs --mesh"},
		{"plan --size s512 --sharding", "--sharding needs --mesh"},
		{"plan --size s512 --mesh batch:2 --sharding --json", "can't be used together"},
		{"fit --size s512 --mesh batch:2", "--mesh"},
	} {
		o := invoke(t, strings.Fields(c.line)...)
		if o.status != exitUsage || !strings.Contains(o.stderr, c.why) ||
			strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("gomem %s: status %d, %q; want %q", c.line, o.status, o.stderr, c.why)
		}
	}
}

// TestSharding: plan says how every value is divided, what was converted, and what it
// comes to.
func TestSharding(t *testing.T) {
	out := succeed(t, "plan", "--size", "s512", "--mesh", "batch:2,experts:2", "--sharding")
	for _, want := range []string{
		"\nsource i32[4/batch 16]\n",
		"\nenc/0/moe/reshape_2 f32[2/batch 8/experts 5 32]\n",
		"\nenc/0/moe/expert5/w0 f32[32 64] at experts:1\n",
		"\nenc/0/moe/expert1/matmul f32[10/batch 64] at experts:0\n",
		"\nsum ", " divided, ", " computed once\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if bad := tooWide(out, 80); len(bad) > 0 {
		t.Errorf("%d lines are too wide: %s", len(bad), bad[0])
	}
}

// TestMeshResumes: a run in slices saves whole variables, which a run in other slices goes
// on from, and one without; its report is of the slices' plan.
func TestMeshResumes(t *testing.T) {
	inDir(t)
	adam := with(tiny, "--optimizer", "adam", "--device-memory", "24MiB")
	succeed(t, with(adam, "--steps", "1", "--save", "run", "--mesh", "experts:2")...)
	for i, mesh := range []string{"experts:4", "", "batch:2"} {
		args := with(adam, "--steps", "2", "--resume", "run/step-00000001.safetensors", "--save",
			fmt.Sprintf("other%d", i))
		if mesh != "" {
			args = append(args, "--mesh", mesh)
		}
		succeed(t, args...)
	}
}
