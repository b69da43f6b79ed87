package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/internal/longtest"
)

func healthy(node distrib.NodeID) Facts {
	return Facts{Node: node, Host: fmt.Sprint("host", node), Time: time.Now(), Gomem: "v1",
		Go: "go1.26", Plan: "abc", Expires: time.Now().Add(20 * time.Hour),
		Memory: 8 << 30, NeedMemory: 1 << 30, Disk: 8 << 30, NeedDisk: 1 << 30}
}

// fake is a target that answers with facts, ill in some way.
func fake(node distrib.NodeID, ill func(*Facts)) Target {
	return Target{Node: node, Ask: func(context.Context) (Facts, error) {
		f := healthy(node)
		ill(&f)
		return f, nil
	}}
}

// TestDoctor: one thing is wrong with one node of four, and the one row that says so is of
// that node and says what to do.
func TestDoctor(t *testing.T) {
	t.Parallel()
	for check, ill := range map[string]func(*Facts){
		"clock":       func(f *Facts) { f.Time = f.Time.Add(-3 * time.Second) },
		"gomem":       func(f *Facts) { f.Gomem = "v2" },
		"go":          func(f *Facts) { f.Go = "go1.25" },
		"plan":        func(f *Facts) { f.Plan = "" },
		"certificate": func(f *Facts) { f.Expires = time.Now().Add(time.Minute) },
		"memory":      func(f *Facts) { f.Memory = 1 << 20 },
		"disk":        func(f *Facts) { f.Disk = 0 },
	} {
		var all []Target
		for i := range distrib.NodeID(4) {
			all = append(all, fake(i, func(f *Facts) {
				if i == 1 {
					ill(f)
				}
			}))
		}
		slices.Reverse(all)
		rows := Doctor(t.Context(), all)
		if len(rows) != 4*8 || !slices.IsSortedFunc(rows, func(a, b Row) int {
			return strings.Compare(a.Node, b.Node)
		}) {
			t.Errorf("%s: %d rows, or not by node: %v", check, len(rows), rows)
		}
		for _, r := range rows {
			if bad := r.Node == "1" && r.Check == check; r.OK == bad || bad == (r.Remedy == "") {
				t.Errorf("%s: %+v", check, r)
			}
		}
	}
}

// TestDoctorUnreachable: who does not answer has no facts that could be wrong.
func TestDoctorUnreachable(t *testing.T) {
	t.Parallel()
	dead := Target{Node: 7, Addr: free(t, 1)[0], Ask: func(context.Context) (Facts, error) {
		return Facts{}, errors.New("no answer")
	}}
	unknown := Target{Node: 8, Addr: "no-such-host.invalid:1", Ask: dead.Ask}
	rows := Doctor(t.Context(), []Target{dead, unknown})
	var got []string
	for _, r := range rows {
		if r.OK || r.Remedy == "" {
			t.Errorf("%+v", r)
		}
		got = append(got, r.Node+" "+r.Check)
	}
	if want := []string{"7 reach", "7 answer", "8 reach", "8 answer"}; !slices.Equal(got, want) {
		t.Errorf("rows %v, want %v", got, want)
	}
	if !strings.Contains(rows[2].Remedy, "name") {
		t.Errorf("a name that nobody knows: %+v", rows[2])
	}
}

// TestDoctorAsks: from a process that has not joined, of nodes that answer over etcd, and
// of one that does not.
func TestDoctorAsks(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	a := start(t, quick(one(t)))
	b, c := start(t, joinable(a, 1)), start(t, joinable(a, 2))
	for i, n := range []*Control{a, b, c} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go n.Join(t.Context(), distrib.Node{ID: distrib.NodeID(i), Addr: l.Addr().String()}, 3, 3)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dir := t.TempDir()
	for _, n := range []*Control{a, b} {
		go n.Answer(ctx, func() Facts { return Facts{Gomem: "v1", Plan: "abc", Dir: dir} })
	}
	from := start(t, joinable(a, 99))
	var targets []Target
	for len(targets) < 3 {
		var err error
		if targets, err = from.Targets(ctx); err != nil {
			t.Fatal(err)
		}
	}
	short, stop := context.WithTimeout(ctx, 3*time.Second)
	defer stop()
	rows := Doctor(short, targets)
	for _, r := range rows {
		t.Logf("%+v", r)
		if r.OK == (r.Node == "2" && r.Check == "answer") {
			t.Errorf("%+v", r)
		}
	}
	if len(rows) < 3*3 {
		t.Errorf("%d rows", len(rows))
	}
}
