package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// account is an entry that gomem logs of its memory or of a plan.
type account struct {
	Msg, When     string
	Device        int64 `json:"device_bytes"`
	Host          int64 `json:"host_bytes"`
	ResidentBytes int64 `json:"resident_bytes"`
	PeakBytes     int64 `json:"peak_bytes"`
	Objects       int64 `json:"objects_bytes"`
}

// memory compares what a process that trains has at most with what its plan says.
func memory(ctx context.Context, w io.Writer) error {
	dir, err := os.MkdirTemp("", "gomem-memory-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	gomem := filepath.Join(dir, "gomem")
	build := exec.CommandContext(ctx, "go", "build", "-o", gomem, "./cmd/gomem")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building gomem: %w: %s", err, out)
	}
	fmt.Fprintln(w, "Five steps of `train --size s64`, MiB: the plan's memory, device and "+
		"host; the most that the process had of the system; and what it had when plans were made, "+
		"when their leftovers were returned, and what of that are objects of Go.")
	fmt.Fprintln(w, "\n| model | plan | peak RSS | beside the plan | peak / plan | planned | "+
		"returned | objects |\n|---|---|---|---|---|---|---|---|")
	for _, model := range []string{"moe", "transformer", "resnet", "wgan", "deepspeech"} {
		if err := memoryOf(ctx, w, gomem, model); err != nil {
			return fmt.Errorf("%s: %w", model, err)
		}
	}
	return nil
}

func memoryOf(ctx context.Context, w io.Writer, gomem, model string) error {
	var log bytes.Buffer
	c := exec.CommandContext(ctx, gomem, "train", "--model", model, "--size", "s64", "--steps", "5",
		"--log-level", "debug", "--log-format", "json")
	c.Stderr = &log
	if err := c.Run(); err != nil {
		return err
	}
	var plan int64
	at := map[string]account{}
	for s := bufio.NewScanner(&log); s.Scan(); {
		var a account
		if json.Unmarshal(s.Bytes(), &a) != nil {
			continue // a notice
		}
		switch a.Msg {
		case "plan":
			plan = max(plan, a.Device+a.Host)
		case "memory":
			at[a.When] = a
		}
	}
	if missing := slices.IndexFunc([]string{"planned", "returned", "trained"}, func(s string) bool {
		return at[s].PeakBytes == 0
	}); missing >= 0 || plan == 0 {
		return fmt.Errorf("the log says nothing of memory: %s", cmp.Or(log.String(), "it is empty"))
	}
	mib := func(n int64) float64 { return float64(n) / (1 << 20) }
	peak := at["trained"].PeakBytes
	fmt.Fprintf(w, "| %s | %.1f | %.1f | %.1f | %.2f | %.1f | %.1f | %.1f |\n", model, mib(plan),
		mib(peak), mib(peak-plan), float64(peak)/float64(plan), mib(at["planned"].ResidentBytes),
		mib(at["returned"].ResidentBytes), mib(at["returned"].Objects))
	return nil
}
