package main

import (
	"context"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/gomem/gomem/bench/internal/lab"
	"github.com/gomem/gomem/internal/longtest"
)

// TestRow tries a table out, with two workers.
func TestRow(t *testing.T) {
	longtest.Skip(t)
	l, err := lab.New(t.Context(), 1, 1e9)
	if err != nil {
		t.Skip(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = run(t.Context(), options{workers: 2, steps: 3, mbit: 1000, models: []string{"resnet"},
		schemes: regexp.MustCompile("^ring$")}, &out)
	if row := regexp.MustCompile(`\n\| ring \| 0.1[78] \|`); err != nil ||
		!row.MatchString(out.String()) {
		t.Errorf("%v: %s", err, out.String())
	}
}

// TestWrong: what does not run is an error that says which.
func TestWrong(t *testing.T) {
	longtest.Skip(t)
	err := run(t.Context(), options{models: []string{"none"}, schemes: regexp.MustCompile("x")},
		io.Discard)
	if err == nil || !strings.Contains(err.Error(), "none, one worker alone: exit status 2: ") {
		t.Error(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := run(ctx, options{}, io.Discard); err == nil {
		t.Error("a run that is stopped succeeds")
	}
}

// TestLast: what a run says last is its summary, or there is none.
func TestLast(t *testing.T) {
	s, err := last("{\"type\":\"step\"}\n{\"type\":\"summary\",\"eval_loss\":2}\n", nil)
	if err != nil || s.Loss != 2 {
		t.Error(s, err)
	}
	if _, err := last(`{"type":"step"}`, nil); err == nil {
		t.Error("a step is a summary")
	}
}
