//go:build linux

package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomem/gomem/internal/longtest"

	"github.com/gomem/gomem/bench/internal/lab"
)

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

// rows is the table of some faults, each made once.
func rows(t *testing.T, pattern string) string {
	t.Helper()
	var b strings.Builder
	o := options{out: &b, scenarios: matching(regexp.MustCompile(pattern), scenarios()),
		schemes: []string{"ring"}, tries: 1, atOnce: 1}
	err := lab.Built(t.Context(), func(program, dir string) error {
		return run(t.Context(), o, program, dir)
	})
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(rows) != 3 {
		t.Fatal(b.String())
	}
	return rows[2]
}

// TestFaults: of a worker that is killed the others say so and end.
func TestFaults(t *testing.T) {
	longtest.Skip(t)
	if row := rows(t, "^all.*another is killed"); !strings.Contains(row,
		"| 1 ends with status 1 |") || !strings.Contains(row, "worker 1 failed first") {
		t.Error(row)
	}
}

// TestTakeOver: with an etcd of three beside the job, its run goes on without its first worker
// and without etcd's leader.
func TestTakeOver(t *testing.T) {
	if !longtest.Enabled() {
		t.Skip("takes half a minute: with GOMEM_LONG=1")
	}
	if row := rows(t, "rank 0 and etcd's leader"); !strings.Contains(row, "| 1 goes on |") {
		t.Error(row)
	}
}

// TestStranger: a worker that comes with a wrong token says so, and the job goes on.
func TestStranger(t *testing.T) {
	if !longtest.Enabled() {
		t.Skip("takes half a minute: with GOMEM_LONG=1")
	}
	if row := rows(t, "wrong token"); !strings.Contains(row, "| 1 goes on |") ||
		!strings.Contains(row, "refused the join token |") {
		t.Error(row)
	}
}

// TestRecord: steps that are shown again were made twice, the longest time between two counts, and
// the first line since the harm that names a worker.
func TestRecord(t *testing.T) {
	var r record
	r.hear("worker 2 is late")
	r.begin()
	for _, step := range []string{"7", "8", "6", "7"} {
		r.note(`{"type":"step","step":` + step + `,"steps":9,"workers":2}`)
		time.Sleep(time.Millisecond)
	}
	r.note("{}")
	r.hear("a line")
	if o := r.outcome("goes on"); r.at() != 7 || o.twice != 3 || o.named != 0 ||
		o.pause < time.Millisecond || o.said != "a line" {
		t.Errorf("at %d: %+v", r.at(), o)
	}
	r.hear("gomem: worker 1 is gone; saved in x")
	if o := r.outcome(""); o.named == 0 || o.said != "worker 1 is gone" {
		t.Errorf("%+v", o)
	}
}

// TestStretches: steps of as many workers are one stretch, and a step that nobody has shown is of
// those who made the one before.
func TestStretches(t *testing.T) {
	got := stretches([]int{0, 4, 4, 3, 0, 3, 4, 0})
	if want := []stretch{{4, 2}, {3, 5}, {4, 7}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestRow: a row counts what became of the tries, and has the worst of them.
func TestRow(t *testing.T) {
	tries := []outcome{
		{end: "goes on", pause: time.Second, whole: true},
		{end: "ends with status 1", pause: 3 * time.Second, named: time.Second, twice: 5, back: 1,
			said: "worker 1 is gone"},
		{end: "goes on", pause: 2 * time.Second, back: 1},
	}
	want := "| two | it ends | ring | 1 ends with status 1, 2 goes on | 2.0 (3.0) | 1.0 | 5 | " +
		"2 | 1 | worker 1 is gone |\n"
	if got := row(scenario{kind: kind{name: "two"}, name: "it ends"}, "ring", tries); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
