package workers

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/train"
)

// TestComes: who comes to a run that goes on is let in after a step, with the state of
// those that are there, whether somebody was lost before or not; and the bits are those of
// a run that as many resume from a checkpoint of that step.
func TestComes(t *testing.T) {
	const steps = 40
	for _, scheme := range []string{"ring", "bosen", "average"} {
		c := &course{site: newSite(4), scheme: scheme, least: 2, wait: time.Minute}
		var once sync.Once
		var late *ended
		came := make(chan struct{})
		c.own = func(id distrib.NodeID, o *train.Options) {
			o.Steps = steps
			if id == 0 {
				o.Loader = gate{o.Loader, 30, func() {
					once.Do(func() {
						c.come(3)
						go func() { defer close(came); late = c.work(t, 3) }()
						time.Sleep(20 * time.Millisecond)
					})
				}}
			}
		}
		out := c.all(t, 3)
		<-came
		changes := out[0].changes()
		var step int
		if len(changes) == 1 {
			_, err := fmt.Sscanf(changes[0], "%d: worker 3 is here; 4 go on", &step)
			if err != nil || step < 10 || step > 25 {
				t.Errorf("%s: %v, %v", scheme, changes, err)
			}
		} else {
			t.Errorf("%s: %v", scheme, changes)
		}
		for id, e := range append(out, late) {
			if e.err != nil || e.Steps != steps || e.Workers != 4 {
				t.Errorf("%s: worker %d: %v, %+v", scheme, id, e.err, e.Summary)
			}
		}
		if scheme == "ring" && out[0].WeightsSHA256 != resumedBy(t, 3, step, 4, steps) {
			t.Errorf("other weights than a run of 4 resumed at step %d has", step)
		}
	}
}

// TestComesAfterALoss: too few wait for another worker, and go on with it from where they
// were.
func TestComesAfterALoss(t *testing.T) {
	c := &course{site: newSite(2), scheme: "ring", least: 2, wait: time.Minute}
	var late *ended
	came := make(chan struct{})
	c.own = func(id distrib.NodeID, o *train.Options) {
		o.Steps = 30
		if id == 1 && late == nil {
			o.Loader = gate{o.Loader, 20, sync.OnceFunc(func() {
				c.kill(1)
				time.AfterFunc(100*time.Millisecond, func() {
					defer close(came)
					c.own = func(_ distrib.NodeID, o *train.Options) { o.Steps = 30 }
					c.come(1)
					late = c.work(t, 1)
				})
			})}
		}
	}
	out := c.all(t, 2)
	<-came
	for _, e := range []*ended{out[0], late} {
		if e.err != nil || e.Steps != 30 || e.Workers != 2 {
			t.Errorf("%v, %+v, %v", e.err, e.Summary, e.changes())
		}
	}
	want := "[10: worker 1 is gone; 1 goes on 10: worker 1 is here; 2 go on]"
	if have := fmt.Sprint(out[0].changes()); have != want {
		t.Errorf("%s, want %s", have, want)
	}
}

// TestGoesBack: where a loss leaves nobody's variables whole, in the middle of a step that
// adds gradients up, all go back to the last checkpoint, or to the start, and say so; the
// result is that of a run of as many from there.
func TestGoesBack(t *testing.T) {
	for every, want := range map[int]string{
		4: "[8: worker 1 is gone; 3 go on from step 8, since nobody has a later one whole: " +
			"2 to be done again]",
		0: "[0: worker 1 is gone; 3 go on from step 0, since nobody has a later one whole: " +
			"10 to be done again]",
	} {
		dir := filepath.Join(t.TempDir(), "run")
		c := &course{site: newSite(4), scheme: "ring", least: 2}
		c.own = func(id distrib.NodeID, o *train.Options) {
			show, network := o.Observe, o.Session.Network
			*o = accumulating(t, true, 2)
			o.Observe, o.Session.Network, o.Steps, o.SaveEvery = show, network, 12, every
			if id == 0 {
				o.Save = dir
			}
			if id == 1 { // of step 11, by 4 workers, the second half
				o.Loader = gate{o.Loader, 84, sync.OnceFunc(func() { c.kill(1) })}
			}
		}
		out := c.all(t, 4)
		for _, id := range []int{0, 2, 3} {
			if e := out[id]; e.err != nil || e.Steps != 12 || e.Workers != 3 ||
				fmt.Sprint(e.changes()) != want {
				t.Errorf("every %d: worker %d: %v, %+v, %v", every, id, e.err, e.Summary,
					e.changes())
			}
		}
		saved, err := train.Inspect(dir)
		executions := 2 * (4*8 + 3*4)
		if every == 0 {
			executions = 2 * 3 * 12
		}
		if err != nil || saved.Step != 12 || saved.Workers != 3 || saved.Executions != executions {
			t.Errorf("every %d: %+v, %v", every, saved, err)
		}
	}
}

// TestLossBetweenSteps: schemes that exchange changes between steps go on, too, from what
// one of those that are left has.
func TestLossBetweenSteps(t *testing.T) {
	schemes := []string{"bosen", "bsp", "ssp", "pf", "easgd", "average", "async"}
	for _, scheme := range schemes[:longtest.Count(3, len(schemes))] {
		c := &course{site: newSite(4), scheme: scheme, least: 2}
		c.own = func(id distrib.NodeID, o *train.Options) {
			if o.Steps = 40; id == 2 {
				o.Loader = gate{o.Loader, 60, sync.OnceFunc(func() { c.kill(2) })}
			}
		}
		out := c.all(t, 4)
		for _, id := range []int{0, 1, 3} {
			if e := out[id]; e.err != nil || e.Steps != 40 || e.Workers != 3 ||
				len(e.changes()) != 1 {
				t.Errorf("%s: worker %d: %v, %+v, %v", scheme, id, e.err, e.Summary, e.changes())
			}
		}
	}
}

// TestLeaves: a worker that is to stop goes after a step, and loses nothing; when the first
// one is, or too few would be left, all stop and save.
func TestLeaves(t *testing.T) {
	for stopped, want := range map[distrib.NodeID]string{2: "worker 2 is gone; 2 go on", 0: ""} {
		for _, scheme := range []string{"ring", "bosen"} {
			ctx, cancel := context.WithCancel(t.Context())
			c := &course{site: newSite(3), scheme: scheme, least: 2}
			c.ctx = func(id distrib.NodeID) context.Context {
				if id == stopped {
					return ctx
				}
				return t.Context()
			}
			c.own = func(id distrib.NodeID, o *train.Options) {
				if o.Steps = 30; id == stopped {
					o.Loader = gate{o.Loader, 30, cancel}
				}
			}
			out := c.all(t, 3)
			cancel()
			for id, e := range out {
				goes := want == "" || id == int(stopped)
				if e.err != nil || e.Interrupted != goes || (e.Steps == 30) == goes {
					t.Errorf("%s: worker %d: %v, %+v, %v", scheme, id, e.err, e.Summary,
						e.changes())
				}
			}
			if all := strings.Join(out[1].changes(), "; "); !strings.HasSuffix(all, want) {
				t.Errorf("%s: %q, want %q", scheme, all, want)
			}
		}
	}
}
