package distrib_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
)

// dealt has node 0 own the first half of 300 rows, and node 1 the rest.
type dealt struct{ *distrib.Shards }

func (dealt) Owner(r distrib.Ref) (distrib.NodeID, bool) {
	return distrib.NodeID(r.Row / 150), true
}

// TestKeep: a replica of another node's rows begins as those do, has what is added to it, and takes
// nothing that is for other rows; its memory is counted.
func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := memnet.New(2, memnet.Options{})
		var pool distrib.Pool
		begin := func(keeps ...distrib.NodeID) *distrib.Engine {
			e, err := distrib.New(distrib.Config{Transport: &grabbed{Transport: ts[0], pool: &pool},
				View: viewOf(2), Keeps: keeps,
				Plan: distrib.Plan{Topology: dealt{&distrib.Shards{}}}})
			p := &distrib.Param{Name: "w", Rows: 300, Cols: 2, Data: make([]float32, 600)}
			for i := range p.Data {
				p.Data[i] = float32(i)
			}
			if err == nil {
				err = e.Worker(0).Attach(p)
			}
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		e := begin(1)
		own, other := e.Kept(0), e.Kept(1)
		rows := 0
		for _, r := range slices.Concat(own, other) {
			if rows += int(r.N); r.Data[0] != float32(2*r.Row) {
				t.Errorf("row %d begins with %v", r.Row, r.Data[0])
			}
		}
		if len(own) == 0 || len(other) == 0 || rows != 300 {
			t.Fatalf("%d rows, of %d runs and %d", rows, len(own), len(other))
		}
		before := slices.Clone(other[0].Data)
		if b := e.Bound(); b.Rows < 300*8 {
			t.Errorf("%d bytes for all rows", b.Rows)
		}
		add := func(ref distrib.Ref, u distrib.Update) error {
			b, err := distrib.AppendFrame(nil, distrib.Frame{Ref: ref, U: u})
			if err != nil {
				t.Fatal(err)
			}
			if n, want := pool.Norm(&distrib.Msg{Body: [][]byte{b}}), math.Sqrt(25); n != want {
				t.Errorf("a norm of %v, want %v", n, want)
			}
			return pool.Keep(1, [][]byte{b})
		}
		row := distrib.Ref{Row: other[0].Row, N: 1}
		for range 2 {
			if err := add(row, distrib.Dense{3, -4}); err != nil {
				t.Error(err)
			}
		}
		before[0], before[1] = before[0]+6, before[1]-8
		if got := e.Kept(1)[0].Data; !slices.Equal(got, before) {
			t.Errorf("%v, want %v", got, before)
		}
		if err := add(distrib.Ref{Row: own[0].Row, N: 1}, distrib.Dense{3, -4}); err == nil ||
			!strings.Contains(err.Error(), "which is not here") {
			t.Errorf("a replica of node 1 takes a row of node 0: %v", err)
		}
		if err := pool.Keep(1, [][]byte{[]byte("garbage")}); err == nil {
			t.Error("garbage is added to a replica")
		}
		if got := e.Kept(1)[0].Data; !slices.Equal(got, before) {
			t.Errorf("%v, want %v", got, before)
		}
		e.Close()
		for _, t := range ts {
			t.Close()
		}
	})
}

// TestKeepOnlyAdds: rows whose rule does more than add have no replicas.
func TestKeepOnlyAdds(t *testing.T) {
	ts := memnet.New(1, memnet.Options{})
	defer ts[0].Close()
	plan := distrib.Plan{Rule: &distrib.Momentum{Mu: 0.9}}
	e, err := distrib.New(distrib.Config{Transport: ts[0], View: viewOf(1), Plan: plan,
		Keeps: []distrib.NodeID{1}})
	if err == nil {
		err = e.Worker(0).Attach(&distrib.Param{Name: "w", Rows: 1, Cols: 1,
			Data: make([]float32, 1)})
	}
	if err == nil || !strings.Contains(err.Error(), "which adds updates") {
		t.Errorf("a replica of rows with momentum: %v", err)
	}
}
