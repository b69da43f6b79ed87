package command

import (
	"os"
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/longtest"
)

// TestTrainOnDisk: a run with a tenth of the host memory that it takes otherwise has the
// same weights, says what was on the disk, and leaves nothing there.
func TestTrainOnDisk(t *testing.T) {
	inDir(t)
	run := func(more ...string) map[string]any {
		_, summary := trainLines(t, succeed(t, append(append([]string{}, tiny...),
			append([]string{"--policy", "thesis", "--steps", "2", "--json"}, more...)...)...))
		return summary
	}
	if err := os.Mkdir("disk", 0o700); err != nil {
		t.Fatal(err)
	}
	without := run()
	with := run("--host-memory", "400KiB", "--disk-memory", "1GiB", "--disk", "disk")
	if with["weights_sha256"] != without["weights_sha256"] {
		t.Errorf("other weights: %v and %v", with, without)
	}
	if with["actual_disk_peak_bytes"] != with["predicted_disk_peak_bytes"] ||
		with["actual_disk_peak_bytes"] == nil || without["actual_disk_peak_bytes"] != nil {
		t.Errorf("the disk: %v, without %v", with, without)
	}
	if left := files(t, "disk"); left != "" {
		t.Errorf("left on the disk: %s", left)
	}
}

// TestPlanOnDisk: planning needs no directory, and has the disk's peak beside the others.
func TestPlanOnDisk(t *testing.T) {
	longtest.Skip(t)
	var x struct {
		Disk   int64 `json:"disk_peak_bytes"`
		Budget int64 `json:"disk_budget_bytes"`
		Host   int64 `json:"host_peak_bytes"`
	}
	args := []string{"plan", "--size", "s512", "--policy", "thesis", "--host-memory", "400KiB",
		"--disk-memory", "1GiB"}
	decode(t, succeed(t, append(args, "--json")...), &x)
	if x.Disk == 0 || x.Budget != 1<<30 || x.Host > 400<<10 {
		t.Errorf("the plan says %+v", x)
	}
	if out := succeed(t, args...); !strings.Contains(out, "disk peak") {
		t.Errorf("no disk in %s", out)
	}
}
