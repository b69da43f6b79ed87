package distrib_test

import (
	"testing"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
)

// TestPowerSGDKeeps: what PowerSGD keeps is counted, and never more than was said before,
// however updates are cut and wherever they go.
func TestPowerSGDKeeps(t *testing.T) {
	const rows, cols = 64, 48
	f := &distrib.PowerSGD{Rank: 2}
	v := distrib.View{Nodes: make([]distrib.Node, 3)}
	ps := []*distrib.Param{{Name: "w", Rows: rows, Cols: cols}, {Name: "b", Rows: 1, Cols: 5}}
	if err := f.Bind(v, ps); err != nil {
		t.Fatal(err)
	}
	u := make(distrib.Dense, rows*cols)
	for i := range u {
		u[i] = float32(i*i%101) / 7
	}
	split := func(row, n int, dest distrib.NodeID) {
		e := &distrib.Entry{Ref: distrib.Ref{Row: int32(row), N: int32(n)}, Dest: dest,
			U: u[row*cols : (row+n)*cols]}
		f.Split(e, 0, distrib.Link{})
	}
	for dest := range distrib.NodeID(3) {
		split(0, rows, dest)
	}
	const q = 4 * 2 * cols
	now, most := f.Kept()
	if now != 3*q || most < now || most > 4*q {
		t.Errorf("%d bytes are kept of at most %d, want %d", now, most, 3*q)
	}
	split(0, rows, 1) // again
	if again, _ := f.Kept(); again != now {
		t.Errorf("%d bytes are kept, %d before", again, now)
	}
	for n := 8; n < rows; n++ {
		split(n%3, n, distrib.NodeID(n%3))
		if now, most := f.Kept(); now > most || now < 3*q {
			t.Fatalf("rows up to %d: %d bytes are kept of at most %d", n, now, most)
		}
	}
	for _, p := range ps {
		p.Data = make([]float32, p.Rows*p.Cols)
	}
	bound, err := distrib.Bound(distrib.Config{Plan: distrib.Plan{Up: distrib.Chain{f,
		distrib.Rounding{As: distrib.F16}}}, View: viewOf(3), Workers: 1,
		Transport: memnet.NewNetwork(3, memnet.Options{}).Node(0)}, ps...)
	if err != nil || bound.Filters != most {
		t.Errorf("filters keep up to %d, want %d: %v", bound.Filters, most, err)
	}
}
