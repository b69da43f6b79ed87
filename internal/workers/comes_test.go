package workers

import (
	"context"
	"errors"
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

// TestComesReady: who comes late joins when it has its data and its session. Until then, the
// others take steps as if nobody were there, and it holds up none of them; then it is let in
// after a step.
func TestComesReady(t *testing.T) {
	for _, scheme := range []string{"ring", "bosen", "average"} {
		const steps = 60
		c := &course{site: newSite(4), scheme: scheme, least: 2, late: 3, wait: time.Minute}
		begun, far, in := make(chan struct{}), make(chan struct{}), make(chan struct{})
		late := make(chan *ended, 1)
		c.own = func(id distrib.NodeID, o *train.Options) {
			o.Steps = steps
			switch id {
			case 0: // step 10 has it begin, step 30 shows that nobody waits for it
				o.Loader = gate{gate{o.Loader, 30, sync.OnceFunc(func() {
					go func() { late <- c.work(t, 3) }()
					<-begun
				})}, 90, sync.OnceFunc(func() { close(far); await(t, in) })}
			case 3:
				show := o.Observe
				o.Observe = func(e train.Event) {
					if show(e); e.Kind == train.Start { // its session is ready
						close(begun)
						await(t, far)
						time.AfterFunc(50*time.Millisecond, func() { close(in) })
					}
				}
			}
		}
		out := c.all(t, 3)
		last := <-late
		var step int
		changes := out[0].changes()
		if _, err := fmt.Sscanf(fmt.Sprint(changes), "[%d: worker 3 is here; 4 go on]",
			&step); err != nil || step < 30 {
			t.Errorf("%s: %v, %v", scheme, changes, err)
		}
		for id, e := range append(out, last) {
			if e.err != nil || e.Steps != steps || e.Workers != 4 {
				t.Errorf("%s: worker %d: %v, %+v", scheme, id, e.err, e.Summary)
			}
		}
		if out[0].WeightsSHA256 == "" || last.events[0].Kind != train.Start {
			t.Errorf("%+v, %+v", out[0].Summary, last.events)
		}
		if scheme == "ring" && out[0].WeightsSHA256 != resumedBy(t, 3, step, 4, steps) {
			t.Errorf("other weights than a run of 4 resumed at step %d has", step)
		}
	}
}

// await waits for a channel, and not for ever.
func await(t *testing.T, c <-chan struct{}) {
	select {
	case <-c:
	case <-time.After(20 * time.Second):
		t.Error("nobody has gone on for 20 s")
	}
}

// TestComesInVain: who is not let in ends with the reason, and the others never hear of it.
func TestComesInVain(t *testing.T) {
	c := &course{site: newSite(3), scheme: "ring", least: 2, late: 2, wait: time.Minute}
	c.refused = errors.New("the run is over")
	c.own = func(_ distrib.NodeID, o *train.Options) { o.Steps = 5 }
	if e := c.work(t, 2); !errors.Is(e.err, c.refused) || e.Steps != 0 {
		t.Errorf("%v, %+v", e.err, e.Summary)
	}
	for id, e := range c.all(t, 2) {
		if e.err != nil || e.Steps != 5 || len(e.changes()) > 0 {
			t.Errorf("worker %d: %v, %+v", id, e.err, e.Summary)
		}
	}
	if _, err := Coming(Scheme{}, Options{}, nil); err == nil {
		t.Error("one comes to workers that do not come and go")
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
		executions := 2 * (4*8 + 3*4)
		if every == 0 {
			executions = 2 * 3 * 12
		}
		// The loader is ahead: the others may not have begun step 11 yet.
		if early := "[10: worker 1 is gone; 3 go on]"; fmt.Sprint(out[0].changes()) == early {
			want, executions = early, 2*(4*10+3*2)
		}
		for _, id := range []int{0, 2, 3} {
			if e := out[id]; e.err != nil || e.Steps != 12 || e.Workers != 3 ||
				fmt.Sprint(e.changes()) != want {
				t.Errorf("every %d: worker %d: %v, %+v, %v", every, id, e.err, e.Summary,
					e.changes())
			}
		}
		saved, err := train.Inspect(dir)
		if err != nil || saved.Step != 12 || saved.Workers != 3 || saved.Executions != executions {
			t.Errorf("every %d: %+v, %v", every, saved, err)
		}
	}
}

// TestLossBetweenSteps: schemes that exchange changes between steps go on, too, from what
// one of those that are left has.
func TestLossBetweenSteps(t *testing.T) {
	schemes := []string{"bosen", "bsp", "fabric", "ssp", "pf", "easgd", "average", "async"}
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
	longtest.Skip(t)
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
