package workers

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
)

// TestAsked: a worker that is asked to end waits no more for one that does not answer, and names
// it; it waits for as long as it takes for one that is busy.
func TestAsked(t *testing.T) {
	for name, stopped := range map[string]bool{"stopped": true, "busy": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { asked(t, stopped) })
		})
	}
}

func asked(t *testing.T, stopped bool) {
	net, v := memnet.NewNetwork(3, memnet.Options{}), distrib.View{Epoch: 1}
	for i := range 3 {
		v.Nodes = append(v.Nodes, distrib.Node{ID: distrib.NodeID(i)})
	}
	ctx, ask := context.WithCancel(t.Context())
	var ms []*Member
	for i := range distrib.NodeID(3) {
		s, err := ParseScheme("ring", SchemeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var o Options
		if v.Self = i; i == 2 {
			o.Asked = ctx
		}
		m, err := Join(v, net.Node(i), s, o)
		if err != nil {
			t.Fatal(err)
		}
		ms = append(ms, m)
	}
	for _, m := range ms[1:] {
		if err := m.at().desk.Tell(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	want := ""
	if stopped {
		net.Partition(0)
		want = "worker 0 is gone: it does not answer"
	} else {
		time.AfterFunc(time.Hour, func() { _ = ms[0].at().desk.Tell(t.Context(), nil) })
	}
	ask()
	began, have := time.Now(), ""
	if _, err := ms[2].at().desk.Hear(t.Context()); err != nil {
		have = err.Error()
	}
	if took := time.Since(began); have != want || stopped == (took > time.Minute) {
		t.Errorf("after %v: %q, want %q", took, have, want)
	}
	if err := ms[2].Close(nil); err != nil { // at once, though worker 0 is silent
		t.Error(err)
	}
	if net.Heal(); stopped {
		net.Kill(0)
	}
	closeAll(ms[:2])
}
