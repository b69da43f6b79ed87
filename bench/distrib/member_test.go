package main

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib/workload"
)

// TestDiverged: of a task whose loss grows beyond all bounds, nodes tell every epoch, and none
// of them is taken for one that has reached a target.
func TestDiverged(t *testing.T) {
	o := order{Addrs: []string{"127.0.0.1:0"}, Scheme: "eager", Rate: 1e20, Quick: true}
	spec, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := member(string(spec), strings.NewReader(""), w)
		ended <- errors.Join(err, w.CloseWithError(err))
	}()
	out := &outcome{totals: &workload.Totals{}, sent: map[int]int64{}}
	err = listen(r, out.hear)
	if err := errors.Join(err, <-ended); err != nil {
		t.Fatal(err)
	}
	k := o.task()
	for e := range k.epochs + 1 {
		if p, ok := out.totals.Epoch(e, 1); !ok || p.At.IsZero() {
			t.Errorf("nothing is told of epoch %d", e)
		}
	}
	if p, _ := out.at(k.epochs, 1); p.Mean() <= k.target {
		t.Errorf("a loss of %v", p.Mean())
	}
}

// TestUntold: what not all have told is no loss that could be compared with a target.
func TestUntold(t *testing.T) {
	out := &outcome{totals: &workload.Totals{}, sent: map[int]int64{}}
	out.totals.Add(workload.Progress{Worker: 1, Count: 1, At: time.Unix(1, 0)})
	for e := range 2 {
		if p, took := out.at(e, 2); !math.IsNaN(p.Mean()) || took != 0 {
			t.Errorf("epoch %d: a loss of %v after %v", e, p.Mean(), took)
		}
	}
	if p, _ := out.at(0, 1); p.Mean() != 0 {
		t.Errorf("a loss of %v", p.Mean())
	}
}
