package thesis

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/workers"
	"github.com/gomem/gomem/mesh"
	"github.com/gomem/gomem/planner"
)

// inMemory joins the processes of a mesh.
func inMemory(m mesh.Mesh) (networks []gomem.Network, leave func() error, err error) {
	all, leave, err := workers.Together(collective.Mesh{Names: m.Axes, Shape: m.Cluster}, nil)
	for _, w := range all {
		networks = append(networks, w.Network())
	}
	return networks, leave, err
}

// TestClustered: the largest numbers of experts of table 6.14, of a small model within little
// memory, run on four processes as planned; more are refused, and fit with scheduling.
func TestClustered(t *testing.T) {
	longtest.Skip(t)
	r := &runner{Options{Size: small, Join: inMemory, Progress: func(s string) { t.Log(s) }}}
	rows := append(clustered[:1:1], clustered[2:]...)
	rows = rows[:longtest.Count(2, len(rows))]
	table, err := r.processes(t.Context(), "6.14", rows)
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != len(rows) {
		t.Fatalf("%d rows", len(table.Rows))
	}
	for i, row := range table.Rows {
		if executed := row[len(row)-1]; !strings.HasPrefix(executed, "4 run; +") ||
			!strings.HasSuffix(executed, " refused") {
			t.Errorf("%s: %s", row[0], executed)
		}
		if i > 0 && row[6] < "2.5" {
			t.Errorf("%s: %s times as many experts as without scheduling", row[0], row[6])
		}
	}
	_, err = r.together(t.Context(), clustered[0].mixture, 400)
	if _, ok := errors.AsType[*planner.ErrOutOfMemory](err); !ok ||
		!strings.Contains(err.Error(), "400 experts, process ") {
		t.Errorf("400 experts: %v", err)
	}
}

// TestAnyStart: wherever the search begins, it ends at the number of experts of which every
// process has a plan, while of the next one has none.
func TestAnyStart(t *testing.T) {
	longtest.Skip(t)
	r := &runner{Options{Size: small}}
	for _, row := range []clustering{clustered[0], clustered[3]}[:longtest.Count(1, 2)] {
		most := 0
		for _, guess := range []int{52, 0, 200}[:longtest.Count(2, 3)] {
			n, how, err := r.mostOfAll(t.Context(), row.mixture, guess)
			if err != nil || n < row.step || n%row.step > 0 || most > 0 && n != most ||
				how != fmt.Sprintf("planned; +%d refused", row.step) {
				t.Errorf("%s: from %d it comes to %d, from another number to %d; %q, %v", row.name,
					guess, n, most, how, err)
			}
			most = n
		}
		for rank := range machines {
			x := row.mixture
			x.rank = rank
			fits, err := x.fits(t.Context(), small, most)
			more, failed := x.fits(t.Context(), small, most+x.step)
			if err := errors.Join(err, failed); err != nil || !fits.Fits || more.Fits && rank == 0 {
				t.Errorf("%s, process %d: %d fit: %t, and then %t; %v", x.name, rank, most,
					fits.Fits, more.Fits, err)
			}
		}
	}
	if got := beyond(1280, 0); got != "; more make no model" {
		t.Errorf("of no larger model it says %q", got)
	}
}

// TestRoom: at base a group of tokens has room for one of each of 1,280 dense experts; at s64
// for as many as there are.
func TestRoom(t *testing.T) {
	dense, sparse := clustered[0].mixture, clustered[3].mixture
	for _, c := range []struct {
		x       mixture
		size    string
		experts int
		want    bool
	}{
		{dense, full, 1280, false}, {dense, full, 1281, true}, {dense, replica, 5000, false},
		{sparse, full, 5000, false},
	} {
		if got := c.x.tooMany(c.size, c.experts); got != c.want {
			t.Errorf("%s, %s: %d experts are too many: %t", c.x.name, c.size, c.experts, got)
		}
	}
}
