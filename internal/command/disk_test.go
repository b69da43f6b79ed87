//go:build unix

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
		out, _ := byItself(t, with(with(tiny, "--policy", "thesis", "--steps", "2", "--json"),
			more...)...)
		_, summary := trainLines(t, out)
		return summary
	}
	if err := os.Mkdir("disk", 0o700); err != nil {
		t.Fatal(err)
	}
	without := run()
	with := run("--host-memory", above(t, 400<<10, "--model", "transformer", "--size", "s512"),
		"--disk-memory", "1GiB", "--disk", "disk")
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
		Disk   int64   `json:"disk_peak_bytes"`
		Budget int64   `json:"disk_budget_bytes"`
		Host   int64   `json:"host_peak_bytes"`
		Read   int64   `json:"disk_read_bytes"`
		MS     float64 `json:"disk_ms"`
	}
	args := []string{"plan", "--size", "s512", "--policy", "thesis", "--host-memory",
		above(t, 400<<10, "--size", "s512"), "--disk-memory", "1GiB"}
	decode(t, succeed(t, append(args, "--json")...), &x)
	if x.Disk == 0 || x.Read == 0 || x.MS == 0 || x.Budget != 1<<30 || x.Host > 400<<10 {
		t.Errorf("the plan says %+v", x)
	}
	if out := succeed(t, args...); !strings.Contains(out, "disk peak") ||
		!strings.Contains(out, "\na step reads ") {
		t.Errorf("no disk in %s", out)
	}
}

// TestPredictOnDisk: a text goes on in the same way with a part of the weights on the disk, and
// what a step reads there is said before and at the end.
func TestPredictOnDisk(t *testing.T) {
	inDir(t)
	trained(t, "gpt", "--data", "text:pairs.tsv", "--steps", "2", "--blocks", "llama", "--save",
		"run")
	write(t, "a.txt", "the number")
	run := func(more ...string) (text string, summary map[string]any, errs string) {
		args := []string{"--from", "run", "--tokens", "4", "--policy", "thesis", "--partition", "4",
			"--json", "a.txt"}
		out, errs := byItself(t, append([]string{"predict"}, append(args, more...)...)...)
		lines := predictions(t, out)
		return lines["prediction"][0]["text"].(string), lines["summary"][0], errs
	}
	without, all, errs := run()
	if all["actual_disk_peak_bytes"] != nil || all["disk_read_bytes"] != nil || errs != "" {
		t.Errorf("without a disk: %v, %q", all, errs)
	}
	host := int64(all["actual_host_peak_bytes"].(float64)) / 2
	disk := []string{"--disk-memory", "1GiB", "--disk", "."}
	refused := invoke(t, with([]string{"predict", "--from", "run", "--policy", "thesis",
		"--partition", "4", "--host-memory", "1MiB", "a.txt"}, disk...)...)
	text, x, errs := run(with(disk, "--host-memory", namedBudget(t, refused.stderr))...)
	if text != without {
		t.Errorf("%q with a disk, %q without", text, without)
	}
	read, _ := x["disk_read_bytes"].(float64)
	if x["actual_disk_peak_bytes"] == nil || x["disk_ms"] == nil || read < float64(host)/2 ||
		x["actual_disk_peak_bytes"] != x["predicted_disk_peak_bytes"] {
		t.Errorf("the disk: %v", x)
	}
	if !strings.Contains(errs, "gomem: a step reads "+size(int64(read))+" from the disk") {
		t.Errorf("said before: %q", errs)
	}
}
