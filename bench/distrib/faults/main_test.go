//go:build linux

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/longtest"
)

// TestFaults: of a worker that is killed the others say so and end, or they go on; the table
// has a row of it.
func TestFaults(t *testing.T) {
	longtest.Skip(t)
	var b strings.Builder
	if err := run(t.Context(), &b, kind{}, []string{"ring"}, faults(kind{})[:1]); err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(rows) != 3 || !strings.HasPrefix(rows[2], "| ring | a worker is killed | ") ||
		!strings.Contains(rows[2], "worker 1 failed first") &&
			!strings.Contains(rows[2], "| goes on |") {
		t.Error(b.String())
	}
}

// TestMain is a process of etcd where it is to be one.
func TestMain(m *testing.M) {
	if text := os.Getenv(serverVariable); text != "" {
		if err := serve(text); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// TestTakeOver: with an etcd of three beside the job, its run goes on without its first worker
// and without etcd's leader.
func TestTakeOver(t *testing.T) {
	if !longtest.Enabled() {
		t.Skip("takes half a minute: with GOMEM_LONG=1")
	}
	var b strings.Builder
	k := kind{min: 2, etcd: 3}
	if err := run(t.Context(), &b, k, []string{"ring"}, faults(k)[3:]); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "| ring | rank 0 and etcd's leader are killed | goes on |") {
		t.Error(b.String())
	}
}

// TestStranger: a worker that comes with a wrong token says so, and the job goes on.
func TestStranger(t *testing.T) {
	if !longtest.Enabled() {
		t.Skip("takes half a minute: with GOMEM_LONG=1")
	}
	var b strings.Builder
	k := kind{min: 2, within: true}
	if err := run(t.Context(), &b, k, []string{"ring"}, faults(k)[4:]); err != nil {
		t.Fatal(err)
	}
	if said := b.String(); !strings.Contains(said, "wrong token | goes on |") ||
		!strings.Contains(said, "refused the join token |") {
		t.Error(said)
	}
}

// TestNote: steps that are shown again have been lost.
func TestNote(t *testing.T) {
	j := &job{}
	for _, step := range []string{"7", "8", "6", "7"} {
		j.note(`{"type":"step","step":` + step + `,"steps":9}`)
	}
	if j.note("{}"); j.step != 7 || j.lost != 3 {
		t.Errorf("at %d, %d lost", j.step, j.lost)
	}
}
